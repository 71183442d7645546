import DendroStorage

/// The state that a cycle owns: the store, and when it last appended and synchronized.
/// `GroupCommit.disk` guards it.
struct DiskState {
  /// Nil for a database in memory, and once it is closed.
  var store: Store?
  /// Called after a batch, with the bytes of log since the newest checkpoint.
  var logGrowthHandler: (@Sendable (UInt64) -> Void)?
  /// The last cycle's batch, emptied: the next cycle reuses its memory.
  var spare = Batch()
  /// Whether batches were appended after which no idle record says how far the log is durable.
  var wantsIdleRecord = false
  private(set) var synchronizeCount: UInt64 = 0
  private var hasUnsynchronized = false
  /// The time of the oldest record that is not synchronized.
  private var unsynchronizedSince = ContinuousClock.now
  private var lastAppend = ContinuousClock.now
  /// When the commit delay of the next batch began; nil outside of one.
  private(set) var delayedSince: ContinuousClock.Instant?

  /// Whether the log is closed: no cycle does anything any more.
  private(set) var isClosed = false

  mutating func close() {
    isClosed = true
    store = nil
    logGrowthHandler = nil
  }

  // MARK: The commit thread

  /// Whether a caller leads the present cycle.
  private var isLed = false
  /// When a caller led a cycle last.
  private var lastLead: ContinuousClock.Instant?
  /// When the commit thread wakes up by itself; nil where it does not.
  private var threadWakesAt: ContinuousClock.Instant?

  mutating func beginCycle(isLed: Bool) { self.isLed = isLed }

  mutating func endCycle() {
    if isLed { lastLead = .now }
    isLed = false
  }

  mutating func noteThread(_ pause: BlockingExecutor.Pause?) {
    switch pause {
    case .atMost(let duration)?: threadWakesAt = .now + duration
    case .untilWoken?: threadWakesAt = nil
    case BlockingExecutor.Pause.none?, nil: threadWakesAt = .now
    }
  }

  /// Whether the commit thread looks for work by itself after a commit delay: callers led cycles a moment ago and
  /// may do so again, and to wake it for each of their writes would cost more.
  func looksAgain(_ options: EngineOptions) -> Bool {
    guard options.commitDelay > .zero else { return false }
    return isLed || lastLead.map { ContinuousClock.now - $0 <= options.commitDelay * 4 } ?? false
  }

  /// Whether the commit thread has to be woken to keep this pause, after a cycle that a caller led.
  func wakesThread(for pause: BlockingExecutor.Pause) -> Bool {
    switch pause {
    case .none: return true
    case .untilWoken: return false
    case .atMost(let duration):
      guard let threadWakesAt else { return true }
      return threadWakesAt > .now + duration
    }
  }

  // MARK: Gathering

  /// The callers that may write again soon: those whose writes the last batch acknowledged, and those that
  /// waited for the next one already.
  private var callerCount = 0
  private var callersNoted = ContinuousClock.now
  private var flushDuration = Duration.zero
  private var hasGathered = false

  /// A flush that is shorter than this costs less than to wait for others.
  private static let gatheredFlushMin = Duration.microseconds(200)

  mutating func noteCallers(_ count: Int) {
    callerCount = count
    callersNoted = .now
    hasGathered = false
  }

  mutating func noteFlush(_ duration: Duration) { flushDuration = duration }

  /// The callers that the next batch may wait for; 0 where it waits for none.
  ///
  /// Without this, callers that write again once they are acknowledged form two groups, each of which waits
  /// for the flush of the other. A batch does not wait for callers that have not written again within the
  /// time of a flush.
  var gatheredCount: Int {
    guard !hasGathered, flushDuration >= Self.gatheredFlushMin,
      ContinuousClock.now - callersNoted <= flushDuration
    else { return 0 }
    return callerCount
  }

  /// - Returns: how long the batch waits: a third of the last flush.
  mutating func beginGathering() -> Duration {
    hasGathered = true
    return flushDuration / 3
  }

  /// How long after the last batch an idle record is appended.
  private static let idleDelay = Duration.milliseconds(200)

  init(store: consuming sending Store?) { self.store = store }

  // MARK: The commit delay

  /// Begins a commit delay, in which the next batch grows.
  ///
  /// - Returns: its length, which ends before a synchronize is due.
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
    let start = ContinuousClock.now
    try store.log.synchronize()
    noteFlush(.now - start)
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

  /// The time until the durability asks for a synchronize; nil where it asks for none.
  func untilSynchronize(_ options: EngineOptions) -> Duration? {
    guard hasUnsynchronized else { return nil }
    switch options.durability {
    case .everyCommit: return .zero
    case .interval(let interval): return interval - (ContinuousClock.now - unsynchronizedSince)
    case .none: return nil
    }
  }

  // MARK: Idleness

  /// Whether the last append was so long ago that an idle record is appended.
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
