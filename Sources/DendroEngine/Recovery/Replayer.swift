import DendroStorage
import DendroTree

/// Applies the log's records to a tree with the code of normal operation, and hence to the same result. Used
/// by recovery and by history.
struct Replayer: ~Copyable {
  private(set) var root: Node
  private(set) var lastLSN: LogSequenceNumber
  private(set) var lastTime: Int64
  private(set) var writeCount: UInt64 = 0
  /// Raw bytes of the records replayed.
  private(set) var byteCount: UInt64 = 0

  /// Bytes of those records in the file.
  private(set) var storedByteCount: UInt64 = 0

  /// Nil for the whole tree.
  private let location: ReplayLocation?
  /// Used for all records, which may have one write each.
  private var reader = WriteReader(
    UnsafeRawBufferPointer(start: nil, count: 0), firstLSN: .zero, baseTime: 0)
  private var changes: [Change] = []

  /// - Parameter location: the only one that `replay(_:_:)` gives the right value, with what is below it.
  init(
    root: Node, lastLSN: LogSequenceNumber, lastTime: Int64, location: ReplayLocation? = nil
  ) {
    self.location = location
    self.root = root
    self.lastLSN = lastLSN
    self.lastTime = lastTime
  }

  /// Where a replay of the past ends.
  struct Limit {
    /// The last write that is applied.
    var lsn = LogSequenceNumber(.max)
    /// Milliseconds since 1970; the first write after it is not applied, nor is any behind that.
    var time = Int64.max
  }

  /// Applies the record's writes up to the limit.
  ///
  /// - Returns: false where the limit is reached: no later record is applied.
  mutating func replay(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer, upTo limit: Limit
  ) throws(StorageError) -> Bool {
    guard record.kind == .writes else { return lastLSN < limit.lsn }
    reader.restart(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    for _ in 0..<record.count {
      guard lastLSN < limit.lsn else { return false }
      do throws(CodingError) {
        if limit.time < .max, try reader.nextTime() > limit.time { return false }
        let applied = try reader.applyNext(to: &root, after: lastLSN, &changes)
        guard applied.lsn > lastLSN else { continue }
        lastLSN = applied.lsn
        lastTime = max(lastTime, applied.time)
        writeCount += 1
      } catch {
        throw Self.error(error, reader.pageFailure, in: record)
      }
    }
    return lastLSN < limit.lsn
  }

  /// Applies the record's writes.
  mutating func replay(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer
  ) throws(StorageError) {
    guard record.kind == .writes else { return }
    if let location, record.count == 1, lastLSN < record.firstLSN,
      location.isPassedOver(by: payload)
    {
      lastLSN = record.lastLSN
      lastTime = max(lastTime, record.baseTime)
      writeCount += 1
      return note(record, payload)
    }
    reader.restart(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    for _ in 0..<record.count {
      let applied: (lsn: LogSequenceNumber, time: Int64)
      do throws(CodingError) {
        applied = try reader.applyNext(
          to: &root, after: lastLSN, concerning: location, &changes)
      } catch {
        throw Self.error(error, reader.pageFailure, in: record)
      }
      // The first record may begin before the checkpoint's write.
      guard applied.lsn > lastLSN else { continue }
      lastLSN = applied.lsn
      lastTime = max(lastTime, applied.time)
      writeCount += 1
    }
    guard reader.isAtEnd else {
      throw CodingError(expected: "the end of the record's writes", found: "more bytes").located(
        in: record)
    }
    note(record, payload)
  }

  private mutating func note(_ record: RecordInfo, _ payload: UnsafeRawBufferPointer) {
    byteCount += UInt64(payload.count)
    storedByteCount += record.endOffset - record.offset
  }

  private static func error(
    _ error: CodingError, _ pageFailure: PageFailure?, in record: RecordInfo
  ) -> StorageError {
    (pageFailure?.cause as? StorageError) ?? error.located(in: record)
  }
}
