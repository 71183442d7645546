import DendroTestSupport
import Testing

@testable import DendroEngine

/// Random sequences of what writers, callers that wait, the commit thread and time do to the schedule.
@Suite("The schedule of commits, at random")
struct CommitScheduleRandomTests {
  @Test(
    "no batch is left without a thread, no wake-up lost, no delay too long",
    arguments: Scale.seeds(60))
  func invariants(seed: UInt64) {
    var house = House(seed: seed)
    for step in 0..<1_000 {
      house.step()
      if let problem = house.problem() {
        Issue.record("seed \(seed), step \(step): \(problem)")
        return
      }
      if house.thread == .ended { break }
    }
    house.settle()
    if house.thread == .ended { return }
    #expect(house.open.isEmpty && !house.schedule.wantsProbe, "seed \(seed): all is committed")
    #expect(house.thread == .asleep(until: nil), "seed \(seed)")
  }
}

/// The schedule with a commit thread, callers and an open batch, of which only the times are real.
private struct House {
  enum CommitThread: Equatable {
    /// It asks for the turn some time.
    case awake
    case committing
    case asleep(until: ContinuousClock.Instant?)
    case ended
  }

  var schedule: CommitSchedule
  var open = CommitSchedule.OpenBatch.empty
  var thread = CommitThread.awake
  /// The caller that has the turn.
  private var leader: UInt?
  private var random: SeededGenerator
  private var now = ContinuousClock.now
  /// When the open batch had its first write and a thread could look at it; nil as long as none could.
  private var openSince: ContinuousClock.Instant?
  private var due = CommitSchedule.LogDue()
  private var lastTurnEnd = ContinuousClock.now
  private var lastFlush = Duration.zero
  private var isTending = false
  /// Whether the commit thread has woken by itself, which the schedule does not know before it asks.
  private var hasWokenByItself = false
  private var isWokenInVain = false
  private var callerCount = 0
  private var isClosing = false
  private let closes: Bool

  private static let commitThread = UInt(1)

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    let delays: [Duration] = [.zero, .microseconds(500), .milliseconds(3)]
    schedule = CommitSchedule(commitDelay: delays[Int(seed % 3)])
    closes = seed % 4 == 0
  }

  private var hasTurn: Bool { leader != nil || thread == .committing }

  /// Whether a thread will look at the open batch by itself.
  private var isAttended: Bool { hasTurn || thread == .awake }

  // MARK: Steps

  mutating func step() {
    switch random.below(14) {
    case 0...3: pass(.microseconds(random.below(random.oneIn(20) ? 300_000 : 900)))
    case 4, 5: add { _ in }
    case 6: add { $0.callerCount += 1 }
    case 7, 8: lead()
    case 9...11: runThread()
    case 12: if random.oneIn(2) { endLead() } else { runThread() }
    default: rareStep()
    }
  }

  private mutating func rareStep() {
    switch random.below(12) {
    case 0: add { $0.isLong = true }
    case 1: add { $0.isFull = true }
    case 2: add { $0.endsSegment = true }
    case 3:
      _ = schedule.requestProbe()
      wakeIfNeeded()
    case 4 where closes && random.oneIn(20) && !isClosing:
      add { $0.endsSegment = true }
      isClosing = true
    default: endLead()
    }
  }

  private mutating func pass(_ duration: Duration) {
    now += duration
    if case .asleep(let time?) = thread, time <= now {
      thread = .awake
      hasWokenByItself = true
    }
  }

  private mutating func add(_ change: (inout CommitSchedule.OpenBatch) -> Void) {
    if isClosing { return }
    open.isEmpty = false
    change(&open)
    wakeIfNeeded()
    if !isAttended { noteLook() }
  }

  private mutating func noteLook() {
    if !open.isEmpty, openSince == nil { openSince = now }
  }

  private mutating func wakeIfNeeded() {
    if schedule.takeWakeUp(for: open) { wake() }
  }

  private mutating func wake() {
    if case .asleep = thread {
      thread = .awake
    } else if !hasWokenByItself {
      isWokenInVain = true
    }
  }

  /// A caller waits for the batch, and commits it if it may.
  private mutating func lead() {
    if isClosing { return }
    open.isEmpty = false
    open.callerCount += 1
    open.isSynchronized = true
    if schedule.lead(by: 7) != nil {
      leader = 7
      take()
    } else {
      wakeIfNeeded()
    }
  }

  private mutating func take() {
    callerCount = open.callerCount
    open = .empty
    open.isSynchronized = random.oneIn(2)
    openSince = nil
  }

  /// The commit thread asks for the turn, or ends it.
  private mutating func runThread() {
    switch thread {
    case .asleep, .ended: break
    case .awake:
      if leader == nil { noteLook() }
      hasWokenByItself = false
      switch schedule.beginTurn(for: open, by: Self.commitThread, at: now) {
      case .commit:
        take()
        thread = .committing
      case .tend:
        isTending = true
        thread = .committing
      case .sleep(let pause): sleep(pause)
      case .end: thread = .ended
      }
    case .committing:
      work()
      let pause = schedule.endTurn(with: open, due: due, at: now)
      thread = .awake
      guard let pause else { return thread = .ended }
      sleep(pause)
      lastTurnEnd = now
    }
  }

  private mutating func endLead() {
    guard leader != nil else { return }
    work()
    leader = nil
    if schedule.endLead(with: open, due: due, at: now) { wake() }
    lastTurnEnd = now
  }

  /// What happens in a turn: it takes time, during which `pass` is called between the steps as well.
  private mutating func work() {
    if isClosing {
      // The batch with the close was taken, unless it is still the open one.
      if open.isEmpty { schedule.close() }
    }
    due = .init()
    if random.oneIn(3) { due.synchronize = now + .microseconds(random.below(6_000)) }
    if random.oneIn(2) { due.idleRecord = now + .microseconds(random.below(6_000)) }
    if !isTending, !random.oneIn(4) {
      let flush = random.oneIn(2) ? Duration.microseconds(random.below(3_000)) : nil
      schedule.noteAcknowledged(
        callerCount: callerCount + open.callerCount, flush: flush, at: now)
      if let flush { lastFlush = flush }
    }
    isTending = false
    openSince = nil
    noteLook()
  }

  private mutating func sleep(_ pause: BlockingExecutor.Pause) {
    switch pause {
    case .none: thread = .awake
    case .untilWoken: thread = .asleep(until: nil)
    case .atMost(let duration): thread = .asleep(until: now + duration)
    }
  }

  /// Nothing more is added; the threads do what they have to.
  mutating func settle() {
    for _ in 0..<10_000 {
      if leader != nil {
        endLead()
        due = .init()
      } else if case .asleep(let time) = thread {
        guard let time else { return }
        pass(max(time - now, .zero))
      } else if thread == .ended {
        return
      } else {
        runThread()
      }
    }
  }

  // MARK: Invariants

  /// What does not hold.
  func problem() -> String? {
    if isWokenInVain { return "a thread is woken that is awake" }
    switch schedule.state {
    case .committing:
      if !hasTurn { return "a thread has the turn that has ended it" }
      if schedule.committer != (leader ?? Self.commitThread) { return "another has the turn" }
    case .waking, .handedOver:
      if hasTurn { return "two may have the turn" }
      if thread != .awake { return "a wake-up is lost" }
    case .delaying, .gathering, .idle:
      if hasTurn { return "two may have the turn" }
    case .closed:
      if !hasTurn, case .asleep = thread { return "the commit thread does not end" }
    }
    if isAttended || thread == .ended { return nil }
    guard case .asleep(let time) = thread else { return "no thread" }
    return sleepProblem(until: time)
  }

  /// What is wrong with a commit thread that sleeps while no thread has the turn.
  private func sleepProblem(until time: ContinuousClock.Instant?) -> String? {
    if schedule.wantsProbe { return "no thread probes the disk" }
    if !open.isEmpty {
      guard let time else { return "no thread commits the open batch: \(open)" }
      if !open.mayGrow {
        guard case .gathering(let count) = schedule.state, open.mayGather(count),
          time - now <= lastFlush / 3
        else { return "callers wait for longer than they should: \(open)" }
      } else if case .gathering = schedule.state {
        return "a batch without callers waits for some"
      } else if let openSince,
        time - openSince > max(schedule.commitDelay, CommitSchedule.retryPause)
      {
        return "the delay is longer than the commit delay"
      }
    }
    // A batch that comes makes the idle record needless, and one with callers is synchronized at once.
    let wanted = open.isEmpty ? [due.synchronize, due.idleRecord] : [due.synchronize]
    if open.callerCount == 0, let first = wanted.compactMap({ $0 }).min() {
      guard let time, time <= max(first, lastTurnEnd + CommitSchedule.retryPause) else {
        return "the log gets late what it wants"
      }
    }
    return nil
  }
}
