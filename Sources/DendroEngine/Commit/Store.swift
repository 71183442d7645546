import DendroStorage

/// The disk side of the engine: the directory and the log's end. No locks and no tasks: whoever has
/// the pipeline's turn uses it.
struct Store {
  let directory: DatabaseDirectory
  let log: LogWriter
  /// Bytes of log after the newest checkpoint that were there before this opening, less what was
  /// appended since and is now covered by one.
  private var carriedByteCount: Int64
  /// Bytes appended when the newest segment began.
  private var byteCountAtRoll: UInt64 = 0

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

  /// Begins a segment; everything before it is durable then.
  mutating func roll(time: Int64) throws(StorageError) {
    try log.roll(time: time)
    byteCountAtRoll = log.storedByteCount
  }

  /// A checkpoint covers everything before the newest segment.
  mutating func checkpointed() { carriedByteCount = -Int64(clamping: byteCountAtRoll) }

  /// Appends a batch's records in one go. After an error the log is as it was, or poisoned.
  func append(_ batch: borrowing Batch) throws(StorageError) {
    let records = batch.records
    try batch.payload.withBytes { (payload) throws(StorageError) in
      for record in records {
        try log.stage(
          UnsafeRawBufferPointer(rebasing: payload[record.start..<record.end]),
          firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime)
      }
    }
    try log.write()
  }
}
