import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Synchronization
import Testing

@testable import DendroEngine

/// Writes that are admitted only to a state in which they are allowed.
@Suite("Judged writes")
struct JudgingTests {
  /// A judge that is a closure, and counts how often it was asked.
  private final class Judge: WriteJudge {
    let isBounded: Bool
    private let calls = Atomic<Int>(0)
    private let areSame: @Sendable (_ call: Int) -> Bool
    private let body: @Sendable (_ call: Int, JudgedState) -> Judgement

    /// - Parameter areSame: whether the rules are those of the call, which was the last one.
    init(
      isBounded: Bool, areSame: @escaping @Sendable (_ call: Int) -> Bool = { _ in true },
      _ body: @escaping @Sendable (_ call: Int, JudgedState) -> Judgement
    ) {
      self.isBounded = isBounded
      self.areSame = areSame
      self.body = body
    }

    var callCount: Int { calls.load(ordering: .relaxed) }
    var isCurrent: Bool { areSame(callCount) }
    var comparesQuickly: Bool { isBounded }

    func judge(_ state: JudgedState) -> Judgement {
      body(calls.wrappingAdd(1, ordering: .relaxed).newValue, state)
    }
  }

  private static func value(_ root: Node, _ name: String) -> Int64 {
    guard let path = try? Path(parsing: name),
      case .integer(let value)? = root.node(at: path).scalar
    else { return 0 }
    return value
  }

  /// Allows a write that makes `n` one more than it was, whatever else changes.
  private static func judgement(_ state: JudgedState) -> Judgement {
    let old = value(state.before, "n")
    let isAllowed = value(state.after(), "n") == old + 1
    return Judgement(isAllowed: isAllowed, .wherever { before, _ in value(before, "n") == old })
  }

  private static func write(_ name: String, _ value: Int64) -> EncodedWrite {
    guard let path = try? Path(parsing: name) else { preconditionFailure("\(name) is a path") }
    return EncodedWrite(.set(path, Node(.integer(value))))
  }

  private func submit(
    _ engine: Engine, _ write: EncodedWrite, _ judge: any WriteJudge
  ) -> Result<LogSequenceNumber?, EngineError>? {
    let outcome = Mutex<Result<LogSequenceNumber?, EngineError>?>(nil)
    engine.submit(write, judge: judge) { result in outcome.withLock { $0 = result } }
    engine.pump()
    return outcome.value
  }

  @Test("a judgement lets go of the head, but not of an older tree, which may be long to free")
  func release() {
    let judge = Judge(isBounded: true) { _, _ in Judgement(isAllowed: true, .onlyThere) }
    let write = Self.write("n", 1)
    func tree() -> Node { Node.empty.applying(Self.write("a", 1), time: 1) }
    let (head, newer) = (tree(), tree())
    let judging = Judging(judge)
    #expect(judging.judge(write, on: HeadNode(head), time: 1) == nil)
    func holds(for root: Node) -> Bool {
      if case .admit = judging.nextStep(for: write, on: root, isPartial: false, lastTime: 0) {
        return true
      }
      return false
    }
    #expect(!holds(for: newer))
    #expect(holds(for: head))
    #expect(!holds(for: head))
    #expect(!holds(for: .empty))
  }

  @Test("a write that is denied changes nothing, and its caller learns it")
  func denied() {
    let engine = Engine.inMemory(options: .inline)
    let judge = Judge(isBounded: true) { Self.judgement($1) }
    #expect(submit(engine, Self.write("n", 2), judge) == .failure(.denied))
    #expect(engine.head.root.isEmpty)
    #expect(submit(engine, Self.write("n", 1), judge) == .success(LogSequenceNumber(1)))
    #expect(judge.callCount == 2)
  }

  @Test("writes that change nothing of what was seen cost no second judgement")
  func unrelated() {
    let engine = Engine.inMemory(options: .inline)
    let other = Self.write("other", 1)
    let judge = Judge(isBounded: true) { _, state in
      engine.submit(other, completion: nil)
      return Self.judgement(state)
    }
    #expect(submit(engine, Self.write("n", 1), judge) == .success(LogSequenceNumber(2)))
    #expect(judge.callCount == 1)
  }

  @Test("a write is judged again if what was seen has changed", arguments: [true, false])
  func related(isBounded: Bool) {
    let engine = Engine.inMemory(options: .inline)
    let one = Self.write("n", 1)
    let judge = Judge(isBounded: isBounded) { call, state in
      if call == 1 { engine.submit(one, completion: nil) }
      return Self.judgement(state)
    }
    #expect(submit(engine, Self.write("n", 1), judge) == .failure(.denied))
    #expect(judge.callCount == 2)
    #expect(engine.head.lsn == LogSequenceNumber(1))
  }

  @Test("a judgement of one state alone is none of the next one", arguments: [true, false])
  func onlyThere(isBounded: Bool) {
    let engine = Engine.inMemory(options: .inline)
    let judge = Judge(isBounded: isBounded) { call, _ in
      if call == 1 { engine.submit(Self.write("m", 1), completion: nil) }
      return Judgement(isAllowed: call == 1, .onlyThere)
    }
    #expect(submit(engine, Self.write("n", 1), judge) == .failure(.denied))
    #expect(judge.callCount == 2)
    #expect(engine.head.lsn == LogSequenceNumber(1))
  }

  @Test("a write that was allowed by rules that have changed is judged by the new ones")
  func otherRules() {
    let engine = Engine.inMemory(options: .inline)
    let judge = Judge(isBounded: true, areSame: { $0 > 1 }) { call, _ in
      Judgement(isAllowed: call == 1, .always)
    }
    #expect(submit(engine, Self.write("n", 1), judge) == .failure(.denied))
    #expect(judge.callCount == 2)
    #expect(engine.head.lsn == .zero)
  }

  @Test("the third judgement of a bounded judge may deny the write")
  func deniedUnderLock() {
    let engine = Engine.inMemory(options: .inline)
    let judge = Judge(isBounded: true) { call, _ in
      if call <= 2 { engine.submit(Self.write("m", Int64(call)), completion: nil) }
      return Judgement(isAllowed: call <= 2, .onlyThere)
    }
    #expect(submit(engine, Self.write("n", 1), judge) == .failure(.denied))
    #expect(judge.callCount == 3)
    #expect(engine.head.lsn == LogSequenceNumber(2))
  }

  @Test("a completion's write is judged, though it does not wait for a busy disk")
  func inCompletion() throws {
    let held = HeldDisk()
    var options = EngineOptions()
    options.stallByteLimit = 1
    let engine = try Engine.open(at: "/db", options: options, environment: held.environment)
    let outcome = Outcome()
    engine.submit(Self.write("first", 1)) { _ in
      engine.submit(Self.write("second", 1), completion: nil)
      engine.submit(
        Self.write("n", 1), judge: FixedJudge(isAllowed: false), completion: outcome.take)
    }
    #expect(outcome.wait() == .failure(.denied))
    try engine.synchronize()
    #expect(Self.value(engine.head.root, "second") == 1)
    #expect(Self.value(engine.head.root, "n") == 0)
    try engine.close()
  }

  @Test("a completion's write is judged, though it waits for a segment that has the second root")
  func behindSecondRoot() throws {
    let engine = try Engine.open(at: "/db", environment: SimulatedDisk(seed: 1).environment)
    let outcome = Outcome()
    // Allowed at first, and not once another write has come.
    let judge = Judge(isBounded: true) { call, _ in Judgement(isAllowed: call == 1, .onlyThere) }
    engine.submit(Self.write("first", 1)) { _ in
      engine.submit(
        EncodedWrite(Self.write("n", 1), system: Self.write("kept", 1)), judge: judge,
        completion: outcome.take)
      engine.submit(Self.write("second", 1), completion: nil)
    }
    #expect(outcome.wait() == .failure(.denied))
    #expect(judge.callCount == 2)
    try engine.synchronize()
    #expect(Self.value(engine.head.root, "n") == 0)
    try engine.close()
  }

  @Test("what a transaction's block writes is judged")
  func inBlock() throws {
    let engine = Engine.inMemory(options: .inline)
    let place = try Path(parsing: "t")
    let outcome = Outcome()
    engine.transact(at: place, refused: { _ in }) { _ in
      engine.submit(
        Self.write("n", 1), judge: FixedJudge(isAllowed: false), completion: outcome.take)
      return TransactionDecision(Draft(.set(place, Node(.integer(1))))) { _ in }
    }
    engine.pump()
    #expect(outcome.wait() == .failure(.denied))
    #expect(Self.value(engine.head.root, "t") == 1)
    #expect(Self.value(engine.head.root, "n") == 0)
  }

  /// The outcome of a write that has a completion.
  private final class Outcome: Sendable {
    private let result = Mutex<Result<LogSequenceNumber?, EngineError>?>(nil)
    private let isThere = DispatchSemaphore(value: 0)

    func take(_ result: Result<LogSequenceNumber?, EngineError>) {
      self.result.withLock { $0 = result }
      isThere.signal()
    }

    func wait() -> Result<LogSequenceNumber?, EngineError>? {
      isThere.wait()
      return result.withLock { $0 }
    }
  }

  @Test("the third judgement of a bounded judge is made while no write is admitted")
  func underLock() {
    let engine = Engine.inMemory(options: .inline)
    let judge = Judge(isBounded: true) { call, state in
      // Under the lock it could not.
      if call <= 2 { engine.submit(Self.write("m", Int64(call)), completion: nil) }
      let seen = Self.value(state.before, "m")
      return Judgement(
        isAllowed: true, .wherever { before, _ in Self.value(before, "m") == seen })
    }
    #expect(submit(engine, Self.write("n", 1), judge) == .success(LogSequenceNumber(3)))
    #expect(judge.callCount == 3)
  }

  @Test("for the third judgement of another judge, other writers wait")
  func reserved() async throws {
    let engine = Engine.inMemory()
    let others = DispatchGroup()
    let judge = Judge(isBounded: false) { call, state in
      // Each on a thread of its own, which it has at once: those of a concurrent queue may all be taken by other tests.
      DispatchQueue(label: "other").async(group: others) {
        engine.submit(Self.write("m", Int64(call)), completion: nil)
      }
      let deadline = ContinuousClock.now + .seconds(30)
      // The others come between twice, and wait then.
      while ContinuousClock.now < deadline,
        call <= 2 ? Self.value(engine.head.root, "m") != call : engine.waitingWriterCount == 0
      {}
      return Judgement(isAllowed: Self.value(state.before, "m") == min(call - 1, 2), .onlyThere)
    }
    let lsn = try await engine.write(Self.write("n", 1), judge: judge)
    #expect(lsn == LogSequenceNumber(3))
    #expect(judge.callCount == 3)
    await withCheckedContinuation { done in others.notify(queue: .global()) { done.resume() } }
    #expect(Self.value(engine.head.root, "m") == 3)
    try await engine.close()
  }

  @Test("a judgement that outlasts the patience of the other writers may still hold")
  func outlasts() async throws {
    var options = EngineOptions()
    options.reservationTimeout = .milliseconds(1)
    let engine = Engine.inMemory(options: options)
    let judge = Judge(isBounded: false) { call, state in
      let isAdmitted = DispatchSemaphore(value: 0)
      DispatchQueue(label: "other").async {
        engine.submit(Self.write("m", Int64(call)), completion: nil)
        isAdmitted.signal()
      }
      isAdmitted.wait()
      return Judgement(
        isAllowed: true, state.wantsValidity ? .wherever { _, _ in true } : .onlyThere)
    }
    let lsn = try await engine.write(Self.write("n", 1), judge: judge)
    #expect(lsn == LogSequenceNumber(4))
    #expect(judge.callCount == 3)
    try await engine.close()
  }

  @Test("a write gets the time that was judged, or is judged again")
  func time() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    let times = Mutex<[Int64]>([])
    let other = Self.write("other", 1)
    let judge = Judge(isBounded: true) { call, state in
      times.withLock { $0.append(state.time) }
      if call == 1 {
        disk.clock.advance(by: 1000)
        engine.submit(other, completion: nil)
      }
      let isAllowed = Self.value(state.after(), "t") == state.time
      return Judgement(isAllowed: isAllowed, .always, dependsOnTime: true)
    }
    let stamp = EncodedWrite(
      Draft(
        .set(try Path(parsing: "t"), Node(.integer(0))),
        deferred: [Draft.Deferred(path: .root, value: .timestamp)]))
    #expect(submit(engine, stamp, judge) == .success(LogSequenceNumber(2)))
    let all = times.value
    #expect(all.count == 2)
    #expect(Self.value(engine.head.root, "t") == all.last)
    try engine.close()
  }

  @Test("a transaction's decision is judged with it")
  func transaction() throws {
    let engine = Engine.inMemory(options: .inline)
    let place = try Path(parsing: "n")
    let limit = Self.write("limit", 2)
    engine.submit(limit, completion: nil)
    // Looks at another place than the one that the transaction reads.
    let judge = Judge(isBounded: true) { _, state in
      let limit = Self.value(state.before, "limit")
      return Judgement(
        isAllowed: Self.value(state.after(), "n") <= limit,
        .wherever { before, _ in Self.value(before, "limit") == limit })
    }
    let lower = Self.write("limit", 1)
    func add(during: (Int) -> Void = { _ in }) -> Result<Node, EngineError>? {
      let outcome = Mutex<Result<Node, EngineError>?>(nil)
      var run = 0
      engine.transact(at: place, refused: { error in outcome.withLock { $0 = .failure(error) } }) {
        input in
        run += 1
        during(run)
        let next = Number.integer(1).incrementing(input.scalar)
        return TransactionDecision(Draft(.set(place, Node(next))), judge: judge) { result in
          outcome.withLock { $0 = result }
        }
      }
      engine.pump()
      return outcome.value
    }
    #expect(add() == .success(Node(.integer(1))))
    // On another thread: what the block itself writes comes after the transaction.
    let other = DispatchQueue(label: "other")
    let outcome = add { run in
      guard run == 1 else { return }
      let isDone = DispatchSemaphore(value: 0)
      other.async {
        engine.submit(lower, completion: nil)
        isDone.signal()
      }
      isDone.wait()
    }
    #expect(outcome == .failure(.denied))
    #expect(Self.value(engine.head.root, "n") == 1)
  }

  @Test(
    "of writers that race, only those are admitted that the judge allows in the order of the log",
    arguments: [true, false])
  func race(isBounded: Bool) async throws {
    let engine = Engine.inMemory()
    let counts = await withTaskGroup(of: Int.self, returning: [Int].self) { group in
      for _ in 0..<8 {
        group.addTask { await Self.addOne(to: engine, times: 200, isBounded: isBounded) }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let count = counts.reduce(0, +)
    #expect(Self.value(engine.head.root, "n") == count)
    #expect(count > 0)
    try await engine.close()
  }

  /// Tries so many times to make `n` one more than it is.
  ///
  /// - Returns: how often it was allowed.
  private static func addOne(to engine: Engine, times: Int, isBounded: Bool) async -> Int {
    var count = 0
    for _ in 0..<times {
      let next = write("n", value(engine.head.root, "n") + 1)
      let judge = Judge(isBounded: isBounded) { judgement($1) }
      if (try? await engine.write(next, judge: judge)) != nil { count += 1 }
    }
    return count
  }
}
