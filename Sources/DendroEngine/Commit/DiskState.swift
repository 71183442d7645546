import DendroStorage
import DendroTree

/// The directory and the writer of its log, and when that last appended and synchronized. A turn owns it:
/// `GroupCommit.disk` guards it.
struct DiskState {
  let directory: DatabaseDirectory
  let log: LogWriter
  /// Called after a batch, with the bytes of log since the newest checkpoint.
  var logGrowthHandler: (@Sendable (UInt64) -> Void)?
  /// Whether batches were appended after which no idle record says how far the log is durable.
  var wantsIdleRecord = false
  private(set) var synchronizeCount: UInt64 = 0
  private var hasUnsynchronized = false
  /// The time of the oldest record that is not synchronized.
  private var unsynchronizedSince = ContinuousClock.now
  private var lastAppend = ContinuousClock.now
  /// Added to the bytes appended since opening, it gives those since the newest checkpoint: at first the
  /// bytes that recovery replayed; after a checkpoint, minus the appended bytes that it covers.
  private var carriedByteCount: Int64
  /// The segments begun that no checkpoint covers yet, ascending: the last write before each, and how many
  /// bytes had been appended then.
  private var rolls: [(lastLSN: LogSequenceNumber, byteCount: UInt64)] = []

  /// How long after the last batch an idle record is appended.
  private static let idleDelay = Duration.milliseconds(200)

  init(directory: DatabaseDirectory, log: LogWriter, replayedByteCount: UInt64) {
    self.directory = directory
    self.log = log
    carriedByteCount = Int64(clamping: replayedByteCount)
  }

  // MARK: Appending and synchronizing

  /// Appends a batch's records in one call. After an error the log is as it was, or poisoned.
  ///
  /// - Parameter delayedSince: when the delay of the batch began; nil if it had none.
  mutating func append(
    _ batch: borrowing Batch, delayedSince: ContinuousClock.Instant?
  ) throws(StorageError) {
    let records = batch.encoder.records
    if records.isEmpty { return }
    try batch.encoder.payload.withBytes { (payload) throws(StorageError) in
      for record in records {
        try log.stage(
          UnsafeRawBufferPointer(rebasing: payload[record.start..<record.end]),
          firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime)
      }
    }
    try log.write()
    lastAppend = .now
    if !hasUnsynchronized { unsynchronizedSince = delayedSince ?? lastAppend }
    hasUnsynchronized = true
    wantsIdleRecord = true
  }

  /// Appends records that other engines have written, in one call. After an error the log is as it was, or poisoned.
  mutating func append(_ records: [SharedRecord]) throws(StorageError) {
    for record in records {
      try log.stage(
        record.payload, firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime)
    }
    try log.write()
    lastAppend = .now
    if !hasUnsynchronized { unsynchronizedSince = lastAppend }
    hasUnsynchronized = true
  }

  /// - Returns: how long it took; nil if there was nothing to synchronize.
  @discardableResult
  mutating func synchronize() throws(StorageError) -> Duration? {
    guard hasUnsynchronized else { return nil }
    let start = ContinuousClock.now
    try log.synchronize()
    didSynchronize()
    return .now - start
  }

  /// Begins a segment, which makes everything before it durable.
  mutating func roll(time: Int64, addsSecondRoot: Bool) throws(StorageError) {
    try log.roll(time: time, addsSecondRoot: addsSecondRoot)
    didSynchronize()
    if let last = rolls.last, last.lastLSN == log.lastLSN { return }
    rolls.append((log.lastLSN, log.storedByteCount))
  }

  private mutating func didSynchronize() {
    hasUnsynchronized = false
    synchronizeCount += 1
  }

  /// Whether what was appended is synchronized now.
  func isSynchronizeDue(_ options: EngineOptions) -> Bool {
    synchronizeDue(options).map { $0 <= .now } ?? false
  }

  /// When the durability asks for a synchronize; nil if it asks for none.
  private func synchronizeDue(_ options: EngineOptions) -> ContinuousClock.Instant? {
    guard hasUnsynchronized else { return nil }
    switch options.durability {
    case .everyCommit: return unsynchronizedSince
    case .interval(let interval): return unsynchronizedSince + interval
    case .none: return nil
    }
  }

  // MARK: Checkpoints

  var logBytesSinceCheckpoint: UInt64 {
    UInt64(max(0, Int64(clamping: log.storedByteCount) + carriedByteCount))
  }

  /// Notes that a checkpoint covers the segments up to this write.
  mutating func checkpointed(segmentsUpTo lsn: LogSequenceNumber) {
    guard let index = rolls.lastIndex(where: { $0.lastLSN <= lsn }) else { return }
    carriedByteCount = -Int64(clamping: rolls[index].byteCount)
    rolls.removeSubrange(..<index)
  }

  // MARK: Idleness

  /// Whether the last append was so long ago that an idle record is appended.
  var isIdleRecordDue: Bool {
    wantsIdleRecord && ContinuousClock.now - lastAppend >= Self.idleDelay
  }

  /// When the log wants work although no batch comes.
  func due(_ options: EngineOptions) -> CommitSchedule.LogDue {
    .init(
      synchronize: synchronizeDue(options),
      idleRecord: wantsIdleRecord ? lastAppend + Self.idleDelay : nil)
  }
}
