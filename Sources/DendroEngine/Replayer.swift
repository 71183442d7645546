import DendroStorage
import DendroTree

/// Applies the log's records to a tree: the same code as normal running, hence always the same tree.
struct Replayer {
  private(set) var root: Node
  private(set) var lastLSN: LogSequenceNumber
  private(set) var lastTime: Int64
  private(set) var writeCount: UInt64 = 0
  /// Raw bytes of the records replayed.
  private(set) var byteCount: UInt64 = 0

  /// Bytes of those records in the file.
  private(set) var storedByteCount: UInt64 = 0

  init(root: Node, lastLSN: LogSequenceNumber, lastTime: Int64) {
    self.root = root
    self.lastLSN = lastLSN
    self.lastTime = lastTime
  }

  /// - Parameter visit: told of the tree after each write.
  mutating func replay(
    _ record: RecordInfo, _ payload: UnsafeRawBufferPointer,
    visit: ((LogSequenceNumber, Node) -> Void)? = nil
  ) throws(StorageError) {
    guard record.kind == .writes else { return }
    var reader = WriteReader(payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    var changes: [Change] = []
    for _ in 0..<record.count {
      let applied: (lsn: LogSequenceNumber, time: Int64)
      do throws(CodingError) {
        applied = try reader.applyNext(
          to: &root, after: Mutant.replayFilter.isPlanted ? .zero : lastLSN, &changes)
      } catch {
        throw error.located(in: record)
      }
      // The first record may begin before the checkpoint's write.
      guard applied.lsn > lastLSN else { continue }
      lastLSN = applied.lsn
      lastTime = max(lastTime, applied.time)
      writeCount += 1
      visit?(lastLSN, root)
    }
    guard reader.isAtEnd || Mutant.payloadEnd.isPlanted else {
      throw CodingError(expected: "the end of the record's writes", found: "more bytes").located(
        in: record)
    }
    byteCount += UInt64(payload.count)
    storedByteCount += record.endOffset - record.offset
  }
}
