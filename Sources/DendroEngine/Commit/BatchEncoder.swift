import DendroStorage
import DendroTree

/// The bytes of a batch's writes, cut into records.
///
/// A copy shares its buffers: only one of two copies may be changed.
struct BatchEncoder {
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

  /// The state before one write, to which `rollBack` returns.
  struct Savepoint {
    var start: Int
    /// Where the write's body begins: the part that does not depend on the write before.
    var body: Int
    var beganRecord: Bool
    var previousLastTime: Int64
  }

  var byteCount: Int { payload.count }

  /// Bytes of the longest head of a write without its path: time, kind, and the two counts of the path.
  static let headByteCountMax = 10 + 1 + 2 * 10

  /// Appends one write, to a new record where the last one is full.
  ///
  /// - Parameter body: the write's encoded body, where there is one already.
  mutating func encode(
    _ write: Write, body: PayloadBuffer?, lsn: LogSequenceNumber, time: Int64
  ) -> Savepoint {
    var savepoint = begin(lsn, time)
    let timeDelta = UInt64(time - savepoint.previousLastTime)
    previousPath.withBytes {
      WriteCoding.encodeHead(of: write, timeDelta: timeDelta, after: $0, into: payload)
    }
    savepoint.body = payload.count
    if let body {
      payload.append(body)
    } else {
      WriteCoding.encodeBody(of: write, into: payload)
    }
    end(time)
    return savepoint
  }

  /// Appends and keeps the write of one leaf.
  ///
  /// - Parameter path: a stored path.
  /// - Returns: its bytes.
  mutating func encode(
    _ edit: LeafEdit, at path: UnsafeRawBufferPointer, lsn: LogSequenceNumber, time: Int64
  ) -> Int {
    let savepoint = begin(lsn, time)
    let timeDelta = UInt64(time - savepoint.previousLastTime)
    previousPath.withBytes {
      WriteCoding.encode(edit, at: path, timeDelta: timeDelta, after: $0, into: payload)
    }
    end(time)
    keep(path)
    return payload.count - savepoint.start
  }

  /// Appends and keeps an update whose body is encoded.
  ///
  /// - Parameter base: a stored path.
  /// - Returns: its bytes.
  mutating func encode(
    updating base: UnsafeRawBufferPointer, body: PayloadBuffer, lsn: LogSequenceNumber, time: Int64
  ) -> Int {
    let savepoint = begin(lsn, time)
    let timeDelta = UInt64(time - savepoint.previousLastTime)
    previousPath.withBytes {
      WriteCoding.encodeHead(updating: base, timeDelta: timeDelta, after: $0, into: payload)
    }
    payload.append(body)
    end(time)
    keep(base)
    return payload.count - savepoint.start
  }

  /// Begins a write, in a new record where the last one is full.
  @inline(__always)
  private mutating func begin(_ lsn: LogSequenceNumber, _ time: Int64) -> Savepoint {
    let beginsRecord = records.last.map { $0.end - $0.start >= Batch.recordByteLimit } ?? true
    if beginsRecord {
      records.append(
        RecordSpan(
          start: payload.count, end: payload.count, firstLSN: lsn, count: 0, baseTime: time,
          lastTime: time))
      previousPath.removeAfter(0)
    }
    return Savepoint(
      start: payload.count, body: payload.count, beganRecord: beginsRecord,
      previousLastTime: records[records.count - 1].lastTime)
  }

  /// Ends the write that was begun last.
  @inline(__always)
  private mutating func end(_ time: Int64) {
    let last = records.count - 1
    records[last].end = payload.count
    records[last].count += 1
    records[last].lastTime = time
  }

  /// Keeps the write that was encoded last.
  func keep(_ write: Write) { write.path.storedBytes.withUnsafeBytes { keep($0) } }

  @inline(__always)
  private func keep(_ path: UnsafeRawBufferPointer) {
    previousPath.removeAfter(0)
    previousPath.append(path)
  }

  /// Removes the write that was encoded last.
  mutating func rollBack(to savepoint: Savepoint) {
    payload.removeAfter(savepoint.start)
    let last = records.count - 1
    if savepoint.beganRecord {
      records.removeLast()
    } else {
      records[last].end = savepoint.start
      records[last].count -= 1
      records[last].lastTime = savepoint.previousLastTime
    }
  }

  /// Empties the encoder, and keeps its memory for the next batch.
  mutating func removeAll() {
    payload.removeAll()
    records.removeAll(keepingCapacity: true)
  }
}
