import DendroStorage
import DendroTree

/// The bytes of a batch's writes, cut into records.
struct BatchEncoder {
  /// Record after record.
  private(set) var payload = PayloadBuffer()
  /// Where the records lie in `payload`.
  private(set) var records: [RecordSpan] = []
  /// The path of the last write in the open record: the next path is encoded without the prefix that they
  /// share.
  private var previousPath = Path.root

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

  /// Appends one write, to a new record where the last one is full.
  ///
  /// - Parameter body: the write's encoded body, where there is one already.
  mutating func encode(
    _ write: Write, body: PayloadBuffer?, lsn: LogSequenceNumber, time: Int64
  ) -> Savepoint {
    let beginsRecord = records.last.map { $0.end - $0.start >= Batch.recordByteLimit } ?? true
    if beginsRecord {
      records.append(
        RecordSpan(
          start: payload.count, end: payload.count, firstLSN: lsn, count: 0, baseTime: time,
          lastTime: time))
      previousPath = .root
    }
    let last = records.count - 1
    var savepoint = Savepoint(
      start: payload.count, body: payload.count, beganRecord: beginsRecord,
      previousLastTime: records[last].lastTime)
    WriteCoding.encodeHead(
      of: write, timeDelta: UInt64(time - savepoint.previousLastTime),
      previousPath: previousPath, into: payload)
    savepoint.body = payload.count
    if let body {
      payload.append(body)
    } else {
      WriteCoding.encodeBody(of: write, into: payload)
    }
    records[last].end = payload.count
    records[last].count += 1
    records[last].lastTime = time
    return savepoint
  }

  /// Keeps the write that was encoded last.
  mutating func keep(_ write: Write) { previousPath = write.path }

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
