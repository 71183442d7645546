import DendroStorage
import DendroTree
import Synchronization

/// The bytes of a write in the open batch.
extension CommitPipeline {
  /// Encodes what may be large outside the lock.
  func encodeAhead(_ draft: Draft) -> PayloadBuffer? {
    guard draft.deferred.isEmpty, WriteCoding.mayBeLarge(draft.write) else { return nil }
    let buffer = spareBuffers.withLock { $0.popLast() } ?? PayloadBuffer()
    WriteCoding.encodeBody(of: draft.write, into: buffer)
    return buffer
  }

  func giveBack(_ buffer: PayloadBuffer) {
    buffer.removeAll()
    spareBuffers.withLock { if $0.count < 16 { $0.append(buffer) } }
  }

  /// The bytes that a write to a database in memory would take, paths in full, where a limit may ask for
  /// them; else 0.
  func sizeInMemory(_ write: Write, _ body: PayloadBuffer?, _ state: borrowing Admission) -> Int {
    guard state.memory.isLimited || WriteCoding.mayBeLarge(write) else { return 0 }
    let pathByteCount = write.path.storedBytes.count
    if let body { return pathByteCount + body.count }
    let buffer = spareBuffers.withLock { $0.popLast() } ?? PayloadBuffer()
    defer { giveBack(buffer) }
    WriteCoding.encodeBody(of: write, into: buffer)
    return pathByteCount + buffer.count
  }

  /// Where the encoding of one write begins, and what it changed beside the bytes.
  struct EncodingMark {
    var start: Int
    /// Where the part begins that depends on the write alone.
    var body: Int
    var beganRecord: Bool
    var previousLastTime: Int64
  }

  func encode(
    _ write: Write, body: PayloadBuffer?, lsn: LogSequenceNumber, time: Int64,
    into state: inout Admission
  ) -> EncodingMark {
    let payload = state.batch.payload
    let begins =
      state.batch.records.last.map { $0.end - $0.start >= Batch.recordByteLimit } ?? true
    if begins {
      state.batch.records.append(
        .init(
          start: payload.count, end: payload.count, firstLSN: lsn, count: 0, baseTime: time,
          lastTime: time))
      state.previousPath = .root
    }
    let last = state.batch.records.count - 1
    var mark = EncodingMark(
      start: payload.count, body: payload.count, beganRecord: begins,
      previousLastTime: state.batch.records[last].lastTime)
    WriteCoding.encodeHead(
      of: write, timeDelta: UInt64(time - mark.previousLastTime),
      previousPath: state.previousPath, into: payload)
    mark.body = payload.count
    if let body {
      payload.append(body)
    } else {
      WriteCoding.encodeBody(of: write, into: payload)
    }
    state.batch.records[last].end = payload.count
    state.batch.records[last].count += 1
    state.batch.records[last].lastTime = time
    return mark
  }

  /// Takes back the encoding of the write that was encoded last.
  func takeBack(_ mark: EncodingMark, _ state: inout Admission) {
    state.batch.payload.removeAfter(mark.start)
    let last = state.batch.records.count - 1
    if mark.beganRecord {
      state.batch.records.removeLast()
    } else {
      state.batch.records[last].end = mark.start
      state.batch.records[last].count -= 1
      state.batch.records[last].lastTime = mark.previousLastTime
    }
  }
}
