import DendroStorage
import DendroTree

/// The state that `AdmissionLock` guards: the head, the open batch, and whether writes are admitted.
///
/// Writers call it on their own threads, cycles between their calls of the disk. A value without
/// locks, clock or files: the caller passes the time, and waits, wakes and reports as the results say.
struct Admission: ~Copyable {
  let limits: Limits
  var head: Head
  /// The last admitted write.
  var lastLSN: LogSequenceNumber
  /// The time of the last admitted write; times never decrease.
  var lastTime: Int64
  /// The last write that the log has taken.
  var acknowledgedLSN: LogSequenceNumber
  var durableLSN: LogSequenceNumber
  /// The open batch: writes join it until a cycle takes it.
  var batch = Batch()
  /// What is needed to undo the batch that a cycle has taken and not yet acknowledged.
  var inFlight = InFlight()
  var phase = Phase.running
  /// Nil where no transaction runs.
  var transaction: RunningTransaction?
  /// The disk's refusal before or during closing, which `close()` reports.
  var closingFailure: EngineError?
  var observer: (any CommitObserver)?
  /// Whether the observer is to be called once the lock is released.
  var isObserverWaiting = false
  var memory: MemoryGauge
  var statistics = EngineStatistics()
  /// The body of a write with its server values computed. Empty between two writes.
  let resolved = PayloadBuffer()

  private var commitThread = CommitThread.busy
  /// Whether the next cycle probes the disk, which was full, for room.
  var wantsProbe = false
  private var begunProbeCount: UInt64 = 0
  private var endedProbeCount: UInt64 = 0

  struct Limits {
    var writeByteCount: Int
    /// Bytes of the open batch above which writers wait for the disk.
    var stallByteCount: Int
    /// Whether every batch is synchronized.
    var synchronizesAll: Bool
    /// Whether there is a log.
    var isPersistent: Bool
    /// Whether writes to a database in memory are counted for the metrics.
    var countsWrites: Bool
  }

  struct InFlight {
    var firstLSN: LogSequenceNumber?
    var unreported: [LogSequenceNumber] = []
    /// Shares its bytes with the batch, which does not change until it is acknowledged or undone.
    var undo: UndoLog?
  }

  /// What the commit thread does, and hence what it has to be woken for.
  private enum CommitThread {
    /// It looks at the open batch before it sleeps.
    case busy
    /// It lets a batch without completions grow for the commit delay. Or it looks for work by itself within a
    /// commit delay, since callers led cycles a moment ago.
    case delaying
    /// It waits a moment for callers whose writes were just acknowledged: until so many wait for the batch.
    case gathering(Int)
    case idle
  }

  init(
    head: consuming Head, lastLSN: LogSequenceNumber, lastTime: Int64, memory: MemoryGauge,
    limits: Limits
  ) {
    self.head = head
    self.lastLSN = lastLSN
    self.lastTime = lastTime
    acknowledgedLSN = lastLSN
    durableLSN = lastLSN
    self.memory = memory
    self.limits = limits
  }

  /// The tree with every admitted write.
  var root: Node { head.root }
  /// Where pages of the tree are read from that are still in a checkpoint; nil where all are in memory.
  var pages: CheckpointPages? { head.pages }

  /// The time of a write that is admitted now; times never decrease.
  func nextTime(_ now: Int64) -> Int64 { max(lastTime, now) }

  // MARK: Backpressure

  /// Whether writers wait until a cycle has taken the open batch.
  var isStalled: Bool { batch.byteCount > limits.stallByteCount }

  /// Whether the open batch may wait for the commit delay: no caller waits for it, and it is short.
  private var mayDelayBatch: Bool {
    batch.hasNoCompletions && batch.encoder.byteCount < Batch.recordByteLimit
      && batch.byteCount < limits.stallByteCount
  }

  /// Whether the batch may wait for more of the callers whose writes were just acknowledged.
  private func mayGather(_ count: Int) -> Bool {
    batch.callerCount < count && batch.rolls.isEmpty && batch.closes.isEmpty
      && batch.byteCount < limits.stallByteCount
  }

  // MARK: The observer

  /// The observer, if it is to be called now that the lock is about to be released.
  @inline(__always)
  mutating func takeWaitingObserver() -> (any CommitObserver)? {
    guard isObserverWaiting else { return nil }
    isObserverWaiting = false
    return observer
  }

  // MARK: The commit thread

  /// Whether the commit thread has to be woken for what was just added. It counts as woken then.
  @inline(__always)
  mutating func wakesCommitThread() -> Bool {
    switch commitThread {
    case .busy: return false
    case .delaying: if !wantsProbe, mayDelayBatch { return false }
    case .gathering(let count): if !wantsProbe, mayGather(count) { return false }
    case .idle: if !wantsProbe, batch.isEmpty { return false }
    }
    commitThread = .busy
    return true
  }

  /// What a cycle of the commit thread begins with.
  enum CycleStart {
    /// The batch was taken; `probes`: there has to be room on the disk first.
    case commit(probes: Bool)
    /// The batch may grow.
    case delay
    /// The batch waits a moment for more callers.
    case gather
    case idle
  }

  /// Exchanges the open batch for an empty one where the cycle is to commit it.
  ///
  /// - Parameters:
  ///   - mayDelay: whether the commit delay may begin.
  ///   - gathered: the callers that the batch may wait for; 0 where it waits for none.
  ///   - looksAgain: whether the commit thread looks for work by itself after a commit delay.
  mutating func beginCycle(
    taking taken: inout Batch, mayDelay: Bool, gathered: Int = 0, looksAgain: Bool = false
  ) -> CycleStart {
    let probes = wantsProbe
    if !probes {
      if batch.isEmpty {
        commitThread = looksAgain ? .delaying : .idle
        return .idle
      }
      if batch.callerCount > 0, batch.wantsSynchronize || limits.synchronizesAll,
        mayGather(gathered)
      {
        commitThread = .gathering(gathered)
        return .gather
      }
      if mayDelay, mayDelayBatch {
        commitThread = .delaying
        return .delay
      }
    }
    if probes { begunProbeCount += 1 }
    wantsProbe = false
    commitThread = .busy
    batch.closeBarrier()
    swap(&taken, &batch)
    inFlight = InFlight(
      firstLSN: taken.firstLSN, unreported: taken.unreported, undo: taken.undo)
    return .commit(probes: probes)
  }

  /// Lets the commit thread sleep after a batch, unless there is more to do.
  ///
  /// - Parameter looksAgain: whether it looks for work by itself after a commit delay.
  /// - Returns: whether it may sleep.
  mutating func endCycle(looksAgain: Bool) -> Bool {
    guard batch.isEmpty, !wantsProbe else { return false }
    commitThread = looksAgain ? .delaying : .idle
    return true
  }

  /// Notes that the log has taken the batch in flight.
  ///
  /// - Parameters:
  ///   - lastLSN: of the batch; nil where it has no writes.
  ///   - durableLSN: nil in memory.
  mutating func acknowledge(_ lastLSN: LogSequenceNumber?, durableLSN: LogSequenceNumber?) {
    inFlight = InFlight()
    if let lastLSN { acknowledgedLSN = lastLSN }
    self.durableLSN = durableLSN ?? acknowledgedLSN
  }

  // MARK: A full disk

  /// Asks for a probe in the next cycle.
  ///
  /// - Returns: the request's number, for `hasProbed(since:)`.
  mutating func requestProbe() -> UInt64 {
    wantsProbe = true
    return begunProbeCount
  }

  /// Whether a probe has ended that began after the request.
  func hasProbed(since request: UInt64) -> Bool { endedProbeCount > request }

  mutating func endProbe(foundRoom: Bool) {
    endedProbeCount += 1
    if foundRoom, case .full = phase { phase = .running }
  }

  // MARK: Closing

  enum ClosingStart {
    /// With the refusals that the caller reports once it has released the lock.
    case begun(refused: [(EngineError, Completion?)])
    /// Nothing has begun: the caller reads pages first, then asks again.
    case needsPages(NeededPages)
    /// The engine is closed already.
    case closed
  }

  /// Admits what the running transaction's block has written, then `last`, and nothing after that.
  /// The transaction itself will be refused.
  mutating func beginClosing(
    writing last: HeldWrite?, now: Int64, _ completion: @escaping Completion
  ) -> ClosingStart {
    if case .closed = phase { return .closed }
    var writes = transaction?.heldWrites ?? []
    if let last { writes.append(last) }
    if let needed = neededPages(for: writes) { return .needsPages(needed) }
    transaction?.removeHeldWrites()
    let refused = admit(writes, now: now)
    if case .poisoned(let error) = phase { closingFailure = error }
    phase = .closing
    transaction?.release()
    batch.closes.append(completion)
    return .begun(refused: refused)
  }

  /// Ends the last cycle: nothing is admitted and no commit observed any more.
  ///
  /// - Returns: the completions that came after the last batch was taken.
  mutating func endClosing() -> [Batch.PendingCompletion] {
    phase = .closed
    observer = nil
    batch.closeBarrier()
    let late = batch.completions
    batch.removeAll()
    return late
  }
}
