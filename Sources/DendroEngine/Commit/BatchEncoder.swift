import DendroStorage
import DendroTree

/// The bytes of a batch's writes, cut into records.
struct BatchEncoder: ~Copyable {
  /// Record after record.
  private(set) var payload = PayloadBuffer()
  /// Where the records lie in `payload`.
  private(set) var records: [RecordSpan] = []
  /// The stored path of the last write in the open record: the next path is encoded without the prefix that
  /// they share. A copy, so that no reference is counted for a write.
  private let previousPath = PayloadBuffer()

  struct RecordSpan {
    var start: Int
    var end: Int
    var firstLSN: LogSequenceNumber
    var count: Int
    /// Milliseconds since 1970 of the first write.
    var baseTime: Int64
    /// The time of the last write so far.
    var lastTime: Int64
  }

  var byteCount: Int { payload.count }

  /// Bytes of the longest head of a write without its path: time, kind, and the two counts of the path.
  private static let headByteCountMax = 10 + 1 + 2 * 10

  /// The bytes that `append` would take for a write.
  ///
  /// - Returns: a number that may be too large, but not above `limit`, if the right one is not; that of a write with
  ///   extras may be by a few bytes.
  @inline(__always)
  func byteCount(
    of write: WriteView, extras: EncodedWrite?, time: Int64, limit: Int
  ) -> Int {
    let most =
      Self.headByteCountMax + write.path.count + write.logByteCount
      + (extras.map { LogV1Writer.byteCountMax(of: $0) } ?? 0)
    return most <= limit || extras != nil ? most : byteCount(of: write, time: time)
  }

  @inline(never)
  private func byteCount(of write: WriteView, time: Int64) -> Int {
    let record = openRecord
    let head = PayloadBuffer()
    previousPath.withBytes { previous in
      LogV1Writer.appendHead(
        of: write, timeDelta: UInt64(time - (record?.lastTime ?? time)),
        after: record == nil ? UnsafeRawBufferPointer(start: nil, count: 0) : previous, to: head)
    }
    return head.count + write.logByteCount
  }

  /// The record that the next write joins; nil if it begins one.
  private var openRecord: RecordSpan? {
    guard let last = records.last, last.end - last.start < Batch.recordByteLimit else { return nil }
    return last
  }

  /// Appends one write, to a new record if the last one is full.
  ///
  /// - Returns: its bytes.
  @inline(__always)
  mutating func append(
    _ write: WriteView, extras: EncodedWrite?, lsn: LogSequenceNumber, time: Int64
  ) -> Int {
    let start = payload.count
    let beginsRecord = records.last.map { $0.end - $0.start >= Batch.recordByteLimit } ?? true
    if beginsRecord {
      records.append(
        RecordSpan(
          start: start, end: start, firstLSN: lsn, count: 0, baseTime: time, lastTime: time))
      previousPath.removeAfter(0)
    }
    let last = records.count - 1
    let timeDelta = UInt64(time - records[last].lastTime)
    previousPath.withBytes {
      LogV1Writer.appendHead(
        of: write, extras: extras, timeDelta: timeDelta, after: $0, to: payload)
    }
    write.withLogBody { payload.append($0) }
    if let system = extras?.system { system.appendKept(to: payload) }
    records[last].end = payload.count
    records[last].count += 1
    records[last].lastTime = time
    previousPath.removeAfter(0)
    previousPath.append(write.path)
    return payload.count - start
  }

  /// Empties the encoder, and keeps its memory for the next batch.
  mutating func removeAll() {
    payload.removeAll()
    records.removeAll(keepingCapacity: true)
  }
}
