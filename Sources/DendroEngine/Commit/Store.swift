import DendroStorage
import DendroTree

/// The directory and the writer of its log. It has no lock of its own: `DiskState` owns it.
struct Store {
  let directory: DatabaseDirectory
  let log: LogWriter
  /// Added to the bytes appended since opening, it gives those since the newest checkpoint: at first the
  /// bytes that recovery replayed; after a checkpoint, minus the appended bytes that it covers.
  private var carriedByteCount: Int64
  /// The segments begun that no checkpoint covers yet, ascending: the last write before each, and how many
  /// bytes had been appended then.
  private var rolls: [(lastLSN: LogSequenceNumber, byteCount: UInt64)] = []

  init(
    directory: DatabaseDirectory, log: LogWriter, replayedByteCount: UInt64
  ) {
    self.directory = directory
    self.log = log
    carriedByteCount = Int64(clamping: replayedByteCount)
  }

  var logBytesSinceCheckpoint: UInt64 {
    UInt64(max(0, Int64(clamping: log.storedByteCount) + carriedByteCount))
  }

  /// Begins a segment, which makes everything before it durable.
  mutating func roll(time: Int64) throws(StorageError) {
    try log.roll(time: time)
    if let last = rolls.last, last.lastLSN == log.lastLSN { return }
    rolls.append((log.lastLSN, log.storedByteCount))
  }

  /// Notes that a checkpoint covers the segments up to this write.
  mutating func checkpointed(segmentsUpTo lsn: LogSequenceNumber) {
    guard let index = rolls.lastIndex(where: { $0.lastLSN <= lsn }) else { return }
    carriedByteCount = -Int64(clamping: rolls[index].byteCount)
    rolls.removeSubrange(..<index)
  }

  /// Appends a batch's records in one call. After an error the log is as it was, or poisoned.
  func append(_ batch: borrowing Batch) throws(StorageError) {
    let records = batch.encoder.records
    try batch.encoder.payload.withBytes { (payload) throws(StorageError) in
      for record in records {
        try log.stage(
          UnsafeRawBufferPointer(rebasing: payload[record.start..<record.end]),
          firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime)
      }
    }
    try log.write()
  }
}
