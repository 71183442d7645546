import DendroStorage
import DendroTree

/// The state that `AdmissionLock` guards: the head, the open batch, and whether writes are admitted.
///
/// Writers call it on their own threads, turns between their calls of the disk. A value without clock or files, and without
/// locks but for the one that `HeadReaders` takes to change the head: the caller passes the time, and waits, wakes and
/// reports as the results say.
struct Admission: ~Copyable {
  let limits: Limits
  var head: Head
  /// The second root with every admitted write: what is kept beside the data, and shown to no reader of them. All of
  /// its pages are in memory.
  var system: TreeEditor
  /// Whether the log takes writes to the second root.
  var secondRoot: SecondRoot
  /// The last admitted write.
  var lastLSN: LogSequenceNumber
  /// The time of the last admitted write; times never decrease.
  var lastTime: Int64
  /// The last write that is in the log.
  var acknowledgedLSN: LogSequenceNumber
  var durableLSN: LogSequenceNumber
  /// The open batch: writes join it until a turn takes it.
  var batch = Batch()
  /// What undoes the batch that a turn has taken and not yet acknowledged.
  var inFlight = UndoLog()
  var phase = Phase.running
  var transactions = RunningTransactions()
  /// Whether it was said that the disk is full, and no batch has been written since: a disk may have room for a probe, and
  /// none for the next write.
  var isFullReported = false
  /// The disk's refusal before or during closing, which `close()` reports.
  var closingFailure: EngineError?
  var observer: (any CommitObserver)?
  /// What is shown instead of the head; nil if each admitted write is shown at once.
  var covered: CoveredState?
  /// Whether the observer is to be called once the lock is released.
  var isObserverWaiting = false
  var memory: MemoryGauge
  var statistics = EngineStatistics()
  /// The body of a write with its server values computed. Empty between two writes.
  let resolved = PayloadBuffer()

  var schedule: CommitSchedule
  /// The last turn's batch, emptied: its memory is used again. Nil while a thread has the turn.
  private(set) var spare: Batch? = Batch()

  struct Limits {
    var writeByteCount: Int
    /// Bytes of the open batch above which writers wait for the disk.
    var stallByteCount: Int
    /// Whether every batch is synchronized, or appended to a shared log, before it is acknowledged.
    var synchronizesAll: Bool
    /// Whether there is a log.
    var isPersistent: Bool
    /// Whether writes to a database in memory are counted for the metrics.
    var countsWrites: Bool
  }

  init(
    head: consuming Head, system: Node, secondRoot: SecondRoot, lastLSN: LogSequenceNumber,
    lastTime: Int64, memory: MemoryGauge, limits: Limits, schedule: CommitSchedule
  ) {
    self.head = head
    self.system = TreeEditor(system, remembersPlace: false)
    self.secondRoot = secondRoot
    self.lastLSN = lastLSN
    self.lastTime = lastTime
    acknowledgedLSN = lastLSN
    durableLSN = lastLSN
    self.memory = memory
    self.limits = limits
    self.schedule = schedule
  }

  /// The tree with every admitted write.
  var root: Node { head.root }
  /// Both trees with every admitted write.
  var roots: TreeRoots { TreeRoots(data: head.root, system: system.root) }
  /// Where pages of the tree are read from that are still in a checkpoint; nil if all are in memory.
  var pages: CheckpointPages? { head.pages }

  /// The time of a write that is admitted now; times never decrease.
  func nextTime(_ now: Int64) -> Int64 { max(lastTime, now) }

  // MARK: Backpressure

  /// Whether writers wait until a turn has taken the open batch.
  var isStalled: Bool { batch.byteCount > limits.stallByteCount }

  // MARK: The observer

  /// The observer, if it is to be called now that the lock is about to be released.
  @inline(__always)
  mutating func takeWaitingObserver() -> (any CommitObserver)? {
    guard isObserverWaiting else { return nil }
    isObserverWaiting = false
    return observer
  }

  // MARK: Commits

  /// What the schedule has to know of the open batch.
  private var openBatch: CommitSchedule.OpenBatch {
    CommitSchedule.OpenBatch(
      isEmpty: batch.isEmpty, callerCount: batch.callerCount,
      endsSegment: !batch.rolls.isEmpty || !batch.closes.isEmpty,
      isSynchronized: limits.synchronizesAll || batch.wantsSynchronize,
      isLong: batch.encoder.byteCount >= Batch.recordByteLimit,
      isFull: batch.byteCount >= limits.stallByteCount)
  }

  /// Has the commit thread woken if what was just added needs it.
  ///
  /// - Returns: whether the caller wakes the thread: it counts as woken.
  @inline(__always)
  mutating func takeWakeUp() -> Bool { schedule.isUnattended && takeWakeUpUnattended() }

  /// A function of its own, into which the optimizer inlines the schedule: of the open batch it computes only what the
  /// state asks for.
  @inline(never)
  private mutating func takeWakeUpUnattended() -> Bool { schedule.takeWakeUp(for: openBatch) }

  /// Gives the turn to the commit thread, if it is free and there is work.
  ///
  /// - Parameter taken: the batch, if the thread is to commit one.
  mutating func beginTurn(
    taking taken: inout Batch?, by threadID: UInt, at now: CommitSchedule.Instant
  ) -> CommitSchedule.Start {
    let start = schedule.beginTurn(for: openBatch, by: threadID, at: now)
    if case .commit = start { takeBatch(&taken) }
    return start
  }

  /// Gives the turn to a caller who waits for the open batch.
  ///
  /// - Returns: nil if another thread commits the batch.
  mutating func lead(taking taken: inout Batch?, by threadID: UInt) -> CommitSchedule.Turn? {
    guard let turn = schedule.lead(by: threadID) else { return nil }
    takeBatch(&taken)
    return turn
  }

  /// Takes the open batch under inline execution; nil if there is nothing to commit.
  mutating func takeInline(_ taken: inout Batch?) -> CommitSchedule.Turn? {
    guard let turn = schedule.takeInline(openBatch) else { return nil }
    takeBatch(&taken)
    return turn
  }

  private mutating func takeBatch(_ taken: inout Batch?) {
    batch.closeBarrier()
    takeCovered()
    swap(&inFlight, &batch.undo)
    var next = spare.take() ?? Batch()
    swap(&next, &batch)
    taken = consume next
  }

  /// Ends a turn of the commit thread.
  ///
  /// - Parameters:
  ///   - used: the batch that it has committed, emptied.
  ///   - due: when the log wants work although no batch comes.
  /// - Returns: how long the thread sleeps before it asks for the next turn, if it is not woken; nil once closed.
  mutating func endTurn(
    _ used: inout Batch?, due: CommitSchedule.LogDue, at now: CommitSchedule.Instant
  ) -> BlockingExecutor.Pause? {
    giveBack(&used)
    return schedule.endTurn(with: openBatch, due: isRunning ? due : .init(), at: now)
  }

  /// Ends a turn of a caller, as `endTurn`.
  ///
  /// - Returns: whether the caller wakes the commit thread.
  mutating func endLead(
    _ used: inout Batch?, due: CommitSchedule.LogDue, at now: CommitSchedule.Instant
  ) -> Bool {
    giveBack(&used)
    return schedule.endLead(with: openBatch, due: isRunning ? due : .init(), at: now)
  }

  /// Whether `takeInline` has something to take.
  var hasWorkInline: Bool { !batch.isEmpty }

  /// Keeps the memory of a batch for the next one.
  mutating func giveBack(_ used: inout Batch?) {
    if let batch = used.take() { spare = consume batch }
  }

  /// Whether the disk takes what is written.
  private var isRunning: Bool { if case .running = phase { true } else { false } }

  /// Notes that the batch in flight is in the log, and so acknowledged.
  ///
  /// - Parameters:
  ///   - taken: the batch. It gets back what would have undone it, since freeing that may take long.
  ///   - durableLSN: nil in memory.
  ///   - flush: how long its synchronize took; nil if there was none.
  mutating func acknowledge(
    _ taken: inout Batch, durableLSN: LogSequenceNumber?, flush: Duration?,
    at now: CommitSchedule.Instant
  ) {
    swap(&inFlight, &taken.undo)
    show(covered: taken.undo, taken.lastLSN)
    schedule.noteAcknowledged(
      callerCount: taken.callerCount + batch.callerCount, flush: flush, at: now)
    if let lastLSN = taken.lastLSN { acknowledgedLSN = lastLSN }
    self.durableLSN = durableLSN ?? acknowledgedLSN
  }

  // MARK: A full disk

  /// Admits writes again if there is room.
  mutating func endProbe(foundRoom: Bool) {
    schedule.endProbe()
    if foundRoom, case .full = phase { phase = .running }
  }

  // MARK: Closing

  /// Admits nothing from now on. Running transactions will be refused.
  ///
  /// - Returns: false if the engine is closed already.
  mutating func beginClosing(_ completion: @escaping Completion) -> Bool {
    if case .closed = phase { return false }
    if case .poisoned(let error) = phase { closingFailure = error }
    phase = .closing
    transactions.release()
    batch.closes.append(completion)
    return true
  }

  /// Ends the last turn: nothing is admitted and no commit observed any more.
  ///
  /// - Returns: the completions that came after the last batch was taken.
  mutating func endClosing() -> [Batch.PendingCompletion] {
    phase = .closed
    schedule.close()
    observer = nil
    defer { batch.removeAll() }
    return batch.takeCompletions(failing: .closed)
  }
}
