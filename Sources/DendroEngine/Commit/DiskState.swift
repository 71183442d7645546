import DendroStorage

/// What whoever has the disk's turn owns: the store, and when it last did what.
struct Turn {
  /// Nil for a database in memory, and once closed.
  var store: Store?
  /// The batch that the last cycle emptied, kept for its memory.
  var spare = Batch()
  /// Whether an empty record should tell up to where the log is durable once there is time.
  var wantsMark = false
  private(set) var synchronizeCount: UInt64 = 0
  private var hasUnsynchronized = false
  /// Of the oldest record that is not synchronized.
  private var unsynchronizedSince = ContinuousClock.now
  private var lastAppend = ContinuousClock.now
  /// Since when the batch that comes next grows; nil where it does not.
  private(set) var gatheringSince: ContinuousClock.Instant?

  init(store: consuming sending Store?) { self.store = store }

  var sinceAppend: Duration { ContinuousClock.now - lastAppend }

  /// Lets the next batch grow.
  ///
  /// - Returns: for how long: a synchronize that is due before is not put off.
  mutating func beginGathering(_ options: EngineOptions) -> Duration {
    gatheringSince = .now
    var delay = options.gatheringDelay
    if case .interval(let interval) = options.durability { delay = min(delay, interval) }
    return min(delay, untilSynchronize(options) ?? delay)
  }

  mutating func endGathering() { gatheringSince = nil }

  mutating func didAppend() {
    lastAppend = .now
    if !hasUnsynchronized { unsynchronizedSince = gatheringSince ?? lastAppend }
    hasUnsynchronized = true
    wantsMark = true
  }

  mutating func didSynchronize() {
    hasUnsynchronized = false
    synchronizeCount += 1
  }

  mutating func synchronize() throws(StorageError) {
    guard let store, hasUnsynchronized else { return }
    try store.log.synchronize()
    didSynchronize()
  }

  func isSynchronizeDue(_ options: EngineOptions) -> Bool {
    switch options.durability {
    case .everyCommit: return true
    case .interval: return untilSynchronize(options).map { $0 <= .zero } ?? false
    case .none: return false
    }
  }

  /// How long until the durability asks for a synchronize; nil where it does not.
  func untilSynchronize(_ options: EngineOptions) -> Duration? {
    guard hasUnsynchronized else { return nil }
    switch options.durability {
    case .everyCommit: return .zero
    case .interval(let interval):
      return interval - (ContinuousClock.now - unsynchronizedSince)
    case .none: return nil
    }
  }
}
