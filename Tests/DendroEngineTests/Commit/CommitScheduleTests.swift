import Testing

@testable import DendroEngine

/// Each row of the tables in WritePath.md.
@Suite("The schedule of commits")
struct CommitScheduleTests {
  private typealias Open = CommitSchedule.OpenBatch
  private static let start = ContinuousClock.now
  private static let delay = Duration.milliseconds(2)
  private static let flush = Duration.milliseconds(30)
  private static let (commitThread, caller) = (UInt(1), UInt(2))

  private static func after(_ milliseconds: Int) -> ContinuousClock.Instant {
    start + .milliseconds(milliseconds)
  }

  // MARK: States

  enum State: CaseIterable, Sendable {
    case waking, handedOver, committing, led, delaying, gathering, idle, closed
  }

  /// A schedule in a state, at `after(0)`.
  private static func schedule(_ state: State) -> CommitSchedule {
    var schedule = CommitSchedule(commitDelay: delay)
    func begin(_ open: Open) { _ = schedule.beginTurn(for: open, by: commitThread, at: after(0)) }
    func end(_ open: Open) { _ = schedule.endTurn(with: open, due: .init(), at: after(0)) }
    switch state {
    case .waking: break
    case .idle: begin(.empty)
    case .delaying: begin(.write)
    case .committing: begin(.callers(1))
    case .handedOver:
      begin(.callers(1))
      end(.callers(1))
    case .gathering:
      begin(.callers(1))
      schedule.noteAcknowledged(callerCount: 3, flush: flush, at: after(0))
      end(.callers(1))
    case .led:
      begin(.empty)
      _ = schedule.lead(by: caller)
    case .closed:
      begin(.callers(1))
      schedule.close()
      end(.empty)
    }
    return schedule
  }

  @Test("its states are reached", arguments: State.allCases)
  func reached(state: State) {
    let expected: CommitSchedule.State =
      switch state {
      case .waking: .waking
      case .handedOver: .handedOver
      case .committing: .committing(Self.commitThread)
      case .led: .committing(Self.caller)
      case .delaying: .delaying
      case .gathering: .gathering(3)
      case .idle: .idle
      case .closed: .closed
      }
    #expect(Self.schedule(state).state == expected)
  }

  @Test(
    "the commit thread is woken for what is added if no thread looks, and counts as woken",
    arguments: State.allCases)
  func added(state: State) {
    let wakes: [(Open, Set<State>)] = [
      (.empty, []),
      (.write, [.idle]),
      (.write.with { $0.isLong = true }, [.idle, .delaying]),
      (.write.with { $0.isFull = true }, [.idle, .delaying, .gathering]),
      (.callers(1), [.idle, .delaying]),
      (.callers(2), [.idle, .delaying]),
      (.callers(3), [.idle, .delaying, .gathering]),
      (.callers(0).with { $0.endsSegment = true }, [.idle, .delaying, .gathering]),
    ]
    for (open, states) in wakes {
      var schedule = Self.schedule(state)
      let before = schedule.state
      let isWoken = schedule.takeWakeUp(for: open)
      #expect(isWoken == states.contains(state), "\(open)")
      #expect(schedule.state == (states.contains(state) ? .waking : before))
      let isWokenAgain = schedule.takeWakeUp(for: open)
      #expect(!isWokenAgain)
    }
    var schedule = Self.schedule(state)
    schedule.wantsProbe = true
    let isWoken = schedule.takeWakeUp(for: .empty)
    #expect(isWoken == [.idle, .delaying, .gathering].contains(state))
  }

  @Test("a caller leads if no thread has the turn, or is given it", arguments: State.allCases)
  func leads(state: State) {
    var schedule = Self.schedule(state)
    let mayLead = [.waking, .delaying, .gathering, .idle].contains(state)
    let turn = schedule.lead(by: 7)
    #expect((turn != nil) == mayLead)
    #expect((schedule.committer == 7) == mayLead)
    #expect((turn?.delayedSince != nil) == (state == .delaying))
  }

  @Test("the commit thread gets the turn if it is free", arguments: State.allCases)
  func asks(state: State) {
    var schedule = Self.schedule(state)
    let start = schedule.beginTurn(
      for: .callers(3), by: Self.commitThread, at: Self.after(0))
    switch (state, start) {
    case (.waking, .commit), (.handedOver, .commit), (.delaying, .commit), (.gathering, .commit),
      (.idle, .commit):
      #expect(schedule.committer == Self.commitThread)
    case (.committing, .sleep(.atMost(CommitSchedule.retryPause))),
      (.led, .sleep(.atMost(CommitSchedule.retryPause))):
      break
    case (.closed, .end): break
    default: Issue.record("\(state): \(start)")
    }
  }

  // MARK: Decisions

  /// What a decision depends on.
  struct Facts: CustomTestStringConvertible {
    var wantsProbe = false
    var open = CommitSchedule.OpenBatch.empty
    /// How long the last flush took, of a batch with three callers.
    var flush: Duration?
    /// The time since that batch.
    var sinceAcknowledged = 0
    /// Whether the batch has waited for callers as long as it may.
    var hasGathered = false
    /// Whether the delay has begun, and is over.
    var hasDelayed = false

    var testDescription: String { "\(self)" }
  }

  enum Decision { case commit, gather, delay, rest }

  /// The rows, each with all of its conditions, so that one alone matches.
  private static let rows: [(decision: Decision, matches: @Sendable (Facts) -> Bool)] = [
    (.commit, { $0.wantsProbe }),
    (.rest, { !$0.wantsProbe && $0.open.isEmpty }),
    (.gather, { !$0.wantsProbe && !$0.open.isEmpty && gathers($0) }),
    (.delay, { !$0.wantsProbe && !$0.open.isEmpty && delays($0) }),
    (.commit, { !$0.wantsProbe && !$0.open.isEmpty && !gathers($0) && !delays($0) }),
  ]

  private static func gathers(_ facts: Facts) -> Bool {
    guard let flush = facts.flush, flush >= .microseconds(200), !facts.hasGathered else {
      return false
    }
    return facts.open.isSynchronized && (1...2).contains(facts.open.callerCount)
      && !facts.open.endsSegment && !facts.open.isFull
      && .milliseconds(facts.sinceAcknowledged) <= flush
  }

  private static func delays(_ facts: Facts) -> Bool {
    facts.open.callerCount == 0 && !facts.open.endsSegment && !facts.open.isLong
      && !facts.open.isFull && !facts.hasDelayed
  }

  private static var facts: [Facts] {
    let flags = [false, true]
    var opens: [Open] = [.empty]
    for callers in 0...3 {
      for (ends, synchronized) in [(false, false), (false, true), (true, false), (true, true)] {
        for (long, full) in [(false, false), (false, true), (true, false), (true, true)] {
          opens.append(
            Open(
              isEmpty: false, callerCount: callers, endsSegment: ends,
              isSynchronized: synchronized, isLong: long, isFull: full))
        }
      }
    }
    let flushes: [(Duration?, Int)] = [
      (nil, 0), (.microseconds(199), 0), (.microseconds(200), 0), (flush, 30), (flush, 31),
    ]
    return flags.flatMap { wantsProbe in
      opens.flatMap { open in
        flushes.flatMap { flush, since in
          flags.flatMap { hasGathered in
            flags.map { hasDelayed in
              Facts(
                wantsProbe: wantsProbe, open: open, flush: flush, sinceAcknowledged: since,
                hasGathered: hasGathered, hasDelayed: hasDelayed)
            }
          }
        }
      }
    }
  }

  /// A commit thread's schedule for which the facts hold, and the moment when it asks.
  private static func schedule(_ facts: Facts) -> (CommitSchedule, ContinuousClock.Instant) {
    var schedule = schedule(.committing)
    var now = after(0)
    if let flush = facts.flush {
      schedule.noteAcknowledged(callerCount: 3, flush: flush, at: now)
    }
    if facts.hasGathered, facts.flush ?? .zero >= .microseconds(200) {
      _ = schedule.endTurn(with: .callers(1), due: .init(), at: now)
      #expect(schedule.state == .gathering(3))
      now += facts.flush ?? .zero
    } else {
      _ = schedule.endTurn(with: facts.hasDelayed ? .write : .empty, due: .init(), at: now)
      if facts.hasDelayed { now += delay }
    }
    // A later acknowledgement would begin anew, so a batch that has delayed is asked about later.
    now = max(now, after(facts.sinceAcknowledged))
    schedule.wantsProbe = facts.wantsProbe
    return (schedule, now)
  }

  @Test("each combination of what a decision depends on matches one row, and is decided by it")
  func decisions() {
    var counts: [Int: Int] = [:]
    for facts in Self.facts {
      // Both waits of one batch follow each other in tests of their own.
      if facts.hasDelayed && (facts.hasGathered || facts.flush != nil) { continue }
      let matching = Self.rows.indices.filter { Self.rows[$0].matches(facts) }
      guard matching.count == 1 else {
        Issue.record("\(matching.count) rows match \(facts)")
        continue
      }
      counts[matching[0], default: 0] += 1
      var (schedule, now) = Self.schedule(facts)
      let start = schedule.beginTurn(for: facts.open, by: Self.commitThread, at: now)
      switch (Self.rows[matching[0]].decision, start, schedule.state) {
      case (.commit, .commit(let turn), .committing): #expect(turn.probes == facts.wantsProbe)
      case (.gather, .sleep(.atMost), .gathering(3)),
        (.delay, .sleep(.atMost(Self.delay)), .delaying),
        (.rest, .sleep(.untilWoken), .idle):
        break
      default: Issue.record("\(facts): \(start), \(schedule.state)")
      }
    }
    #expect(counts.count == Self.rows.count, "each row matches something")
  }

  // MARK: What follows from a decision

  @Test("at the end of the commit thread's turn: it goes on, or sleeps until it is to look again")
  func threadEnds() {
    var schedule = Self.schedule(.committing)
    guard
      case BlockingExecutor.Pause.none? = schedule.endTurn(
        with: .callers(1), due: .init(), at: Self.after(0))
    else {
      Issue.record("a batch with callers waits")
      return
    }
    #expect(schedule.state == .handedOver)

    schedule = Self.schedule(.committing)
    schedule.noteAcknowledged(callerCount: 2, flush: Self.flush, at: Self.after(0))
    guard
      case .atMost(.milliseconds(10))? = schedule.endTurn(
        with: .callers(1), due: .init(), at: Self.after(0))
    else {
      Issue.record("a batch does not wait for a third of the flush")
      return
    }
    #expect(schedule.state == .gathering(2))

    schedule = Self.schedule(.committing)
    guard
      case .atMost(Self.delay)? = schedule.endTurn(
        with: .write, due: .init(), at: Self.after(0))
    else {
      Issue.record("a batch without callers does not grow")
      return
    }
    #expect(schedule.state == .delaying)

    schedule = Self.schedule(.committing)
    guard
      case .atMost(.milliseconds(5))? = schedule.endTurn(
        with: .empty, due: .init(synchronize: Self.after(9), idleRecord: Self.after(5)),
        at: Self.after(0))
    else {
      Issue.record("the thread misses what the log wants")
      return
    }
    #expect(schedule.state == .idle)

    schedule = Self.schedule(.closed)
    let pause = schedule.endTurn(with: .empty, due: .init(), at: Self.after(0))
    #expect(pause == nil)
  }

  @Test("at the end of a caller's turn: the commit thread is woken only if it would come too late")
  func callerEnds() {
    func end(_ open: Open, due: CommitSchedule.LogDue = .init()) -> (Bool, CommitSchedule.State) {
      var schedule = Self.schedule(.led)
      let wakes = schedule.endLead(with: open, due: due, at: Self.after(0))
      return (wakes, schedule.state)
    }
    #expect(end(.callers(1)) == (true, .handedOver))
    // The thread sleeps until it is woken. It has to look for the next write.
    #expect(end(.empty) == (true, .delaying))
    #expect(end(.write) == (true, .delaying))

    // A thread that looks soon is not woken.
    var schedule = Self.schedule(.delaying)
    _ = schedule.lead(by: Self.caller)
    var isWoken = schedule.endLead(with: .write, due: .init(), at: Self.after(1))
    #expect(!isWoken)
    #expect(schedule.state == .delaying)
    // Nor is one that has found the turn taken.
    schedule = Self.schedule(.led)
    _ = schedule.beginTurn(for: .empty, by: Self.commitThread, at: Self.after(0))
    isWoken = schedule.endLead(with: .empty, due: .init(), at: Self.after(0))
    #expect(!isWoken)
    // But it is for callers, and to end.
    schedule = Self.schedule(.led)
    _ = schedule.beginTurn(for: .empty, by: Self.commitThread, at: Self.after(0))
    isWoken = schedule.endLead(with: .callers(1), due: .init(), at: Self.after(0))
    #expect(isWoken)
    schedule = Self.schedule(.led)
    schedule.close()
    isWoken = schedule.endLead(with: .empty, due: .init(), at: Self.after(0))
    #expect(isWoken)

    // A thread that is awake already is not woken.
    schedule = Self.schedule(.waking)
    _ = schedule.lead(by: Self.caller)
    isWoken = schedule.endLead(with: .callers(1), due: .init(), at: Self.after(0))
    #expect(!isWoken && schedule.state == .handedOver)
  }

  @Test("without a commit delay no thread looks for work by itself")
  func noDelay() {
    var schedule = CommitSchedule(commitDelay: .zero)
    _ = schedule.beginTurn(for: .empty, by: Self.commitThread, at: Self.after(0))
    _ = schedule.lead(by: Self.caller)
    let isWoken = schedule.endLead(with: .empty, due: .init(), at: Self.after(0))
    #expect(!isWoken && schedule.state == .idle)
    guard case .commit = schedule.beginTurn(for: .write, by: Self.commitThread, at: Self.after(0))
    else {
      Issue.record("a batch waits for no time")
      return
    }
  }

  @Test("what the log wants is done when it is due, and once a turn has said that it wants nothing")
  func tends() {
    var schedule = Self.schedule(.committing)
    _ = schedule.endTurn(
      with: .empty, due: .init(idleRecord: Self.after(200)), at: Self.after(0))
    guard
      case .sleep(.atMost(.milliseconds(1))) = schedule.beginTurn(
        for: .empty, by: Self.commitThread, at: Self.after(199)),
      case .tend = schedule.beginTurn(for: .empty, by: Self.commitThread, at: Self.after(200))
    else {
      Issue.record("the idle record is not appended when it is due")
      return
    }
    #expect(schedule.committer == Self.commitThread)
    guard case .untilWoken? = schedule.endTurn(with: .empty, due: .init(), at: Self.after(200))
    else {
      Issue.record("the thread looks again without a reason")
      return
    }
    #expect(schedule.state == .idle)
  }

  @Test("a delay ends before a synchronize is due, and is begun once for a batch")
  func delayEnds() {
    var schedule = Self.schedule(.committing)
    guard
      case .atMost(.milliseconds(1))? = schedule.endTurn(
        with: .write, due: .init(synchronize: Self.after(1)), at: Self.after(0))
    else {
      Issue.record("a synchronize that is due is put off")
      return
    }
    guard
      case .commit(let turn) = schedule.beginTurn(
        for: .write, by: Self.commitThread, at: Self.after(1))
    else {
      Issue.record("a batch is delayed twice")
      return
    }
    #expect(turn.delayedSince == Self.after(0))
    // Woken too early, the thread sleeps for what is left.
    schedule = Self.schedule(.delaying)
    guard
      case .sleep(.atMost(.milliseconds(1))) = schedule.beginTurn(
        for: .write, by: Self.commitThread, at: Self.after(1))
    else {
      Issue.record("a delay ends early")
      return
    }
  }

  @Test(
    "for four delays after a caller has led, the delay of the next batch begins before its write")
  func looksAgain() {
    var schedule = Self.schedule(.led)
    _ = schedule.endLead(with: .empty, due: .init(), at: Self.after(0))
    for milliseconds in [2, 4, 6, 8] {
      guard
        case .sleep(.atMost(Self.delay)) = schedule.beginTurn(
          for: .empty, by: Self.commitThread, at: Self.after(milliseconds))
      else {
        Issue.record("the thread does not look again after \(milliseconds) ms")
        return
      }
      #expect(schedule.state == .delaying)
    }
    // The write comes, and wakes no thread; the delay has begun two milliseconds ago.
    var other = schedule
    let isWoken = other.takeWakeUp(for: .write)
    #expect(!isWoken)
    guard
      case .commit(let turn) = other.beginTurn(
        for: .write, by: Self.commitThread, at: Self.after(10))
    else {
      Issue.record("a batch is delayed twice")
      return
    }
    #expect(turn.delayedSince == Self.after(8))
    guard
      case .sleep(.untilWoken) = schedule.beginTurn(
        for: .empty, by: Self.commitThread, at: Self.after(10))
    else {
      Issue.record("the thread looks again for ever")
      return
    }
    #expect(schedule.state == .idle)
  }

  // MARK: Probes

  @Test("a probe answers the requests that came before it began")
  func probes() {
    var schedule = Self.schedule(.idle)
    let first = schedule.requestProbe()
    let isWoken = schedule.takeWakeUp(for: .empty)
    #expect(isWoken)
    guard
      case .commit(let turn) = schedule.beginTurn(
        for: .empty, by: Self.commitThread, at: Self.after(0))
    else {
      Issue.record("the disk is not probed")
      return
    }
    #expect(turn.probes && !schedule.wantsProbe)
    let second = schedule.requestProbe()
    #expect(!schedule.hasProbed(since: first))
    schedule.endProbe()
    #expect(schedule.hasProbed(since: first) && !schedule.hasProbed(since: second))
    guard
      case BlockingExecutor.Pause.none? = schedule.endTurn(
        with: .empty, due: .init(), at: Self.after(0)),
      case .commit = schedule.beginTurn(for: .empty, by: Self.commitThread, at: Self.after(0))
    else {
      Issue.record("the second probe is missing")
      return
    }
    schedule.endProbe()
    #expect(schedule.hasProbed(since: second))
  }
}

extension CommitSchedule.OpenBatch {
  static let empty = Self(
    isEmpty: true, callerCount: 0, endsSegment: false, isSynchronized: true, isLong: false,
    isFull: false)
  /// A write for which no caller waits.
  static let write = empty.with { $0.isEmpty = false }

  static func callers(_ count: Int) -> Self { write.with { $0.callerCount = count } }

  func with(_ change: (inout Self) -> Void) -> Self {
    var copy = self
    change(&copy)
    return copy
  }
}
