/// When the open batch is committed, and by which thread: a state machine without clock, lock or thread.
///
/// One thread at a time has the turn, from the moment when it takes the batch to the last completion, so that
/// completions keep their order: the commit thread, or a caller who waits for the batch and leads. At the end of its
/// turn it looks at the open batch again, so no thread is woken for what is added meanwhile. While no thread has the
/// turn, the state says which change of the open batch the commit thread is woken for.
///
/// <doc:WritePath> has the tables. Under inline execution no thread has the turn: a turn begins and ends within one call.
struct CommitSchedule {
  typealias Instant = ContinuousClock.Instant

  /// How long a batch grows for which no caller waits; zero: not at all.
  let commitDelay: Duration

  private(set) var state = State.waking
  private var thread = CommitThread.awake
  /// Begun if no caller waits for the batch, and after a caller has led: the next write begins no other one.
  private(set) var delay: Delay?
  /// Begun at most once for a batch.
  private(set) var gathering: Gathering?
  /// When the log wants work although no batch comes.
  private(set) var due = LogDue()
  /// When the last turn of a caller ended.
  private(set) var lastLead: Instant?
  private(set) var acknowledged: Acknowledged?
  private(set) var lastFlush = Duration.zero

  /// Whether the next turn probes the disk, which was full, for room.
  var wantsProbe = false
  private var begunProbeCount: UInt64 = 0
  private var endedProbeCount: UInt64 = 0

  init(commitDelay: Duration) { self.commitDelay = commitDelay }

  init(_ options: EngineOptions) {
    // Within an interval between two synchronizes no delay is longer than that.
    if case .interval(let interval) = options.durability {
      self.init(commitDelay: min(options.commitDelay, interval))
    } else {
      self.init(commitDelay: options.commitDelay)
    }
  }

  enum State: Equatable {
    /// The commit thread was woken, or has only begun: it asks for the turn.
    case waking
    /// As `waking`, but no caller takes the turn before the commit thread.
    case handedOver
    /// The thread with this ID has the turn.
    case committing(UInt)
    /// The batch grows for the commit delay, or will once there is one.
    case delaying
    /// The batch waits a moment for callers whose writes were just acknowledged, until there are so many.
    case gathering(Int)
    case idle
    case closed
  }

  private enum CommitThread {
    /// It asks for the turn, or has it, before it sleeps.
    case awake
    /// Nil: until it is woken.
    case asleep(until: Instant?)
  }

  struct Delay {
    let since: Instant
    let end: Instant
  }

  struct Gathering {
    let callerCount: Int
    let end: Instant
  }

  /// The callers that may write again soon: those whose writes the last batch acknowledged, and those that waited for
  /// the next one already.
  struct Acknowledged {
    let callerCount: Int
    let time: Instant
  }

  /// How long a commit thread sleeps that finds the turn taken. A delay that begins meanwhile may last as long.
  static let retryPause = Duration.milliseconds(1)
  /// A flush that is shorter than this costs less than to wait for others.
  static let gatheredFlushMin = Duration.microseconds(200)
  /// The commit delays, after a caller has led, in which the commit thread looks for work by itself.
  static let lookCount = 4
}

// MARK: - What is noted

extension CommitSchedule {
  /// Notes that a batch was acknowledged.
  ///
  /// - Parameters:
  ///   - callerCount: the callers whose writes it had, and those that wait for the next one.
  ///   - flush: how long its synchronize took; nil if there was none.
  mutating func noteAcknowledged(callerCount: Int, flush: Duration?, at now: Instant) {
    acknowledged = Acknowledged(callerCount: callerCount, time: now)
    if let flush { lastFlush = flush }
  }

  /// Asks for a probe in the next turn.
  ///
  /// - Returns: the request's number, for `hasProbed(since:)`.
  mutating func requestProbe() -> UInt64 {
    wantsProbe = true
    return begunProbeCount
  }

  /// Whether a probe has ended that began after the request.
  func hasProbed(since request: UInt64) -> Bool { endedProbeCount > request }

  mutating func endProbe() { endedProbeCount += 1 }
}

// MARK: - Waking the commit thread

extension CommitSchedule {
  /// Whether no thread looks at the open batch by itself, so that the commit thread may have to be woken.
  @inline(__always)
  var isUnattended: Bool {
    switch state {
    case .committing, .waking, .handedOver, .closed: false
    case .delaying, .gathering, .idle: true
    }
  }

  /// Has the commit thread woken if the batch needs it now. Call after each change of the batch.
  ///
  /// - Returns: whether the caller wakes the thread: it counts as woken.
  @inline(__always)
  mutating func takeWakeUp(for open: OpenBatch) -> Bool {
    switch state {
    case .committing, .waking, .handedOver, .closed: return false
    case _ where wantsProbe: break
    case .delaying: if open.mayGrow { return false }
    case .gathering(let count): if open.mayGather(count) { return false }
    case .idle: if open.isEmpty { return false }
    }
    state = .waking
    return wakeThread()
  }

  /// - Returns: whether the caller wakes the commit thread.
  private mutating func wakeThread() -> Bool {
    guard case .asleep = thread else { return false }
    thread = .awake
    return true
  }

  /// Has the commit thread woken if it would sleep for much longer.
  private mutating func wakeThread(toSleepUntil time: Instant?, _ now: Instant) -> Bool {
    guard let time, case .asleep(let wakesAt) = thread else { return false }
    if let wakesAt, wakesAt <= max(time, now + Self.retryPause) { return false }
    return wakeThread()
  }
}

// MARK: - Turns

extension CommitSchedule {
  /// Gives the turn to the commit thread, if it is free and there is work.
  mutating func beginTurn(for open: OpenBatch, by threadID: UInt, at now: Instant) -> Start {
    thread = .awake
    switch state {
    case .closed: return .end
    case .committing: return .sleep(pause(until: now + Self.retryPause, now))
    case .waking, .handedOver, .delaying, .gathering, .idle: break
    }
    let decision = decision(on: open, at: now)
    switch decision {
    case .commit: return .commit(takeBatch(threadID))
    case .rest:
      if let time = due.first, time <= now {
        state = .committing(threadID)
        delay = nil
        return .tend
      }
    case .gather, .delay: break
    }
    return .sleep(pause(until: wait(for: decision, now), now))
  }

  /// Gives the turn to a caller who waits for the open batch.
  ///
  /// - Returns: nil if another thread commits it, which is awake.
  mutating func lead(by threadID: UInt) -> Turn? {
    if case .waking = state { return takeBatch(threadID) }
    return isUnattended ? takeBatch(threadID) : nil
  }

  /// Takes the open batch under inline execution.
  ///
  /// - Returns: nil if there is nothing to commit.
  mutating func takeInline(_ open: OpenBatch) -> Turn? {
    open.isEmpty && !wantsProbe ? nil : takeBatch(nil)
  }

  private mutating func takeBatch(_ threadID: UInt?) -> Turn {
    if let threadID { state = .committing(threadID) }
    if wantsProbe { begunProbeCount += 1 }
    defer {
      wantsProbe = false
      delay = nil
      gathering = nil
    }
    return Turn(probes: wantsProbe, delayedSince: delay?.since)
  }

  /// Ends a turn of the commit thread.
  ///
  /// - Returns: how long it sleeps before it asks for the next one, if it is not woken; nil once closed.
  mutating func endTurn(
    with open: OpenBatch, due: LogDue, at now: Instant
  ) -> BlockingExecutor.Pause? {
    if case .closed = state { return nil }
    self.due = due
    let decision = decision(on: open, at: now)
    if case .commit = decision {
      state = .handedOver
      return BlockingExecutor.Pause.none
    }
    return pause(until: wait(for: decision, now), now)
  }

  /// Ends a turn of a caller.
  ///
  /// - Returns: whether the caller wakes the commit thread: to commit what has come meanwhile, to sleep less long, or
  ///   to end.
  mutating func endLead(with open: OpenBatch, due: LogDue, at now: Instant) -> Bool {
    if case .closed = state { return wakeThread() }
    self.due = due
    lastLead = now
    let decision = decision(on: open, at: now)
    switch decision {
    case .commit, .gather:
      state = .handedOver
      return wakeThread()
    case .delay, .rest: return wakeThread(toSleepUntil: wait(for: decision, now), now)
    }
  }

  /// Begins what was decided.
  ///
  /// - Returns: when the commit thread looks at the batch if it is not woken; nil: never.
  private mutating func wait(for decision: Decision, _ now: Instant) -> Instant? {
    switch decision {
    case .commit: return now
    case .gather(let gathering):
      self.gathering = gathering
      state = .gathering(gathering.callerCount)
      return gathering.end
    case .delay(let delay):
      self.delay = delay
      state = .delaying
      return delay.end
    case .rest:
      // After a lead the next write without a completion wakes no thread: its delay begins here.
      delay = looksAgain(now) ? newDelay(now) : nil
      state = delay == nil ? .idle : .delaying
      return Self.earlier(delay?.end, due.first)
    }
  }

  private mutating func pause(until time: Instant?, _ now: Instant) -> BlockingExecutor.Pause {
    thread = .asleep(until: time)
    return time.map { .atMost(max($0 - now, .zero)) } ?? .untilWoken
  }

  /// Ends the last turn: the commit thread ends when it asks for another one.
  mutating func close() { state = .closed }

  /// The thread that has the turn; nil if none has.
  var committer: UInt? {
    if case .committing(let threadID) = state { threadID } else { nil }
  }
}
