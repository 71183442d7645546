import DendroStorage

/// The state that a turn owns: the store, and when it last appended and synchronized.
/// `GroupCommit.disk` guards it.
struct DiskState {
  /// Nil for a database in memory, and once it is closed.
  var store: Store?
  /// Called after a batch, with the bytes of log since the newest checkpoint.
  var logGrowthHandler: (@Sendable (UInt64) -> Void)?
  /// Whether batches were appended after which no idle record says how far the log is durable.
  var wantsIdleRecord = false
  private(set) var synchronizeCount: UInt64 = 0
  private var hasUnsynchronized = false
  /// The time of the oldest record that is not synchronized.
  private var unsynchronizedSince = ContinuousClock.now
  private var lastAppend = ContinuousClock.now

  /// How long after the last batch an idle record is appended.
  private static let idleDelay = Duration.milliseconds(200)

  init(store: consuming sending Store?) { self.store = store }

  mutating func close() {
    store = nil
    logGrowthHandler = nil
  }

  // MARK: Appending and synchronizing

  /// - Parameter delayedSince: when the delay of the batch began; nil where it had none.
  mutating func append(
    _ batch: borrowing Batch, delayedSince: ContinuousClock.Instant?
  ) throws(StorageError) {
    if batch.encoder.records.isEmpty || store == nil { return }
    try store!.append(batch)
    lastAppend = .now
    if !hasUnsynchronized { unsynchronizedSince = delayedSince ?? lastAppend }
    hasUnsynchronized = true
    wantsIdleRecord = true
  }

  /// - Returns: how long it took; nil where there was nothing to synchronize.
  @discardableResult
  mutating func synchronize() throws(StorageError) -> Duration? {
    guard let store, hasUnsynchronized else { return nil }
    let start = ContinuousClock.now
    try store.log.synchronize()
    didSynchronize()
    return .now - start
  }

  mutating func roll(time: Int64) throws(StorageError) {
    try store!.roll(time: time)
    didSynchronize()
  }

  private mutating func didSynchronize() {
    hasUnsynchronized = false
    synchronizeCount += 1
  }

  /// Whether what was appended is synchronized now.
  func isSynchronizeDue(_ options: EngineOptions) -> Bool {
    synchronizeDue(options).map { $0 <= .now } ?? false
  }

  /// When the durability asks for a synchronize; nil where it asks for none.
  private func synchronizeDue(_ options: EngineOptions) -> ContinuousClock.Instant? {
    guard hasUnsynchronized else { return nil }
    switch options.durability {
    case .everyCommit: return unsynchronizedSince
    case .interval(let interval): return unsynchronizedSince + interval
    case .none: return nil
    }
  }

  // MARK: Idleness

  /// Whether the last append was so long ago that an idle record is appended.
  var isIdleRecordDue: Bool {
    wantsIdleRecord && ContinuousClock.now - lastAppend >= Self.idleDelay
  }

  /// When the log wants work although no batch comes.
  func due(_ options: EngineOptions) -> CommitSchedule.LogDue {
    guard store != nil else { return .init() }
    return .init(
      synchronize: synchronizeDue(options),
      idleRecord: wantsIdleRecord ? lastAppend + Self.idleDelay : nil)
  }
}
