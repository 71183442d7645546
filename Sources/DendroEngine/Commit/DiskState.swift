import DendroStorage

/// What a cycle of the commit thread owns: the store, and when it last did what.
struct DiskState {
  /// Nil for a database in memory, and once closed.
  var store: Store?
  /// Called with the bytes of log since the newest checkpoint once a batch was appended.
  var logGrowthHandler: (@Sendable (UInt64) -> Void)?
  /// The batch that the last cycle emptied, kept for its memory.
  var spare = Batch()
  /// Whether the log does not yet say how far it is durable.
  var wantsIdleRecord = false
  private(set) var synchronizeCount: UInt64 = 0
  private var hasUnsynchronized = false
  /// Of the oldest record that is not synchronized.
  private var unsynchronizedSince = ContinuousClock.now
  private var lastAppend = ContinuousClock.now
  /// Since when the next batch grows for the commit delay; nil where it does not.
  private(set) var delayedSince: ContinuousClock.Instant?

  /// How long after the last batch an idle record is appended.
  private static let idleDelay = Duration.milliseconds(200)

  init(store: consuming sending Store?) { self.store = store }

  // MARK: The commit delay

  /// Lets the next batch grow.
  ///
  /// - Returns: for how long. A synchronize that is due before is not put off.
  mutating func beginDelay(_ options: EngineOptions) -> Duration {
    delayedSince = .now
    var delay = options.commitDelay
    if case .interval(let interval) = options.durability { delay = min(delay, interval) }
    return min(delay, untilSynchronize(options) ?? delay)
  }

  mutating func endDelay() { delayedSince = nil }

  // MARK: Appending and synchronizing

  mutating func append(_ batch: borrowing Batch) throws(StorageError) {
    if batch.encoder.records.isEmpty || store == nil { return }
    try store!.append(batch)
    lastAppend = .now
    if !hasUnsynchronized { unsynchronizedSince = delayedSince ?? lastAppend }
    hasUnsynchronized = true
    wantsIdleRecord = true
  }

  mutating func synchronize() throws(StorageError) {
    guard let store, hasUnsynchronized else { return }
    try store.log.synchronize()
    didSynchronize()
  }

  mutating func roll(time: Int64) throws(StorageError) {
    try store!.roll(time: time)
    didSynchronize()
  }

  private mutating func didSynchronize() {
    hasUnsynchronized = false
    synchronizeCount += 1
  }

  /// Whether a batch that was just appended is synchronized before it is acknowledged.
  func isSynchronizeDue(_ options: EngineOptions) -> Bool {
    switch options.durability {
    case .everyCommit: true
    case .interval: untilSynchronize(options).map { $0 <= .zero } ?? false
    case .none: false
    }
  }

  /// How long until the durability asks for a synchronize; nil where it does not.
  func untilSynchronize(_ options: EngineOptions) -> Duration? {
    guard hasUnsynchronized else { return nil }
    switch options.durability {
    case .everyCommit: return .zero
    case .interval(let interval): return interval - (ContinuousClock.now - unsynchronizedSince)
    case .none: return nil
    }
  }

  // MARK: Idleness

  /// Whether nothing was appended for long enough that an idle record is appended.
  var isIdleRecordDue: Bool {
    wantsIdleRecord && ContinuousClock.now - lastAppend >= Self.idleDelay
  }

  /// How long the commit thread sleeps where there is no work for it.
  func pause(_ options: EngineOptions) -> BlockingExecutor.Pause {
    guard store != nil else { return .untilWoken }
    if let duration = untilSynchronize(options) { return .atMost(duration) }
    return wantsIdleRecord ? .atMost(Self.idleDelay) : .untilWoken
  }
}
