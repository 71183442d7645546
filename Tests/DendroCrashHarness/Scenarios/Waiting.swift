import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// Tasks that wait for the disk, writers for a transaction, and callers for an engine that is closed: each
/// wait ends, and completions come in order.
package enum Waiting {
  package static let scenarios = [
    Scenario("tasks write while too much waits for the disk", tasks),
    Scenario("a task waits for the block that waits for it", taskAndBlock),
    Scenario("a write that is refused among others", refusedInTurn),
    Scenario("a transaction that gives up", givesUp),
    Scenario("a block that writes and closes", blockCloses),
    Scenario("a transaction that writes back what was there", difference),
    Scenario("what is asked of a closed engine", closedEngine),
    Scenario("closures that wait for the engine", hooksThatWait),
    Scenario("closures that are slow", slowHooks),
    Scenario("a follower when the engine is closed", followerEnds),
    Scenario("a follower that is cancelled", followerCancelled),
    Scenario("what followers have read", followedLog),
  ]

  private static func open() throws(EngineError) -> Engine {
    try EngineRecording.open(SimulatedDisk(seed: 1))
  }

  // MARK: Writers

  /// The disk stands still at its first write until all tasks came to where they wait.
  @Sendable private static func tasks() throws {
    let disk = SimulatedDisk(seed: 1)
    let between = InterposedDisk(disk)
    let engine = try between.open(.smallBacklog)
    let (isBegun, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    between.interpose(before: .write, on: ".log") {
      isBegun.signal()
      goesOn.wait()
    }
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    isBegun.wait()
    let executor = QueueExecutor()
    let answers = DispatchGroup()
    let failures = Notes()
    var random = SeededRandomness(seed: 2)
    for index in 0..<100 {
      let bytes = (0..<1000).map { _ in UInt8.random(in: 0x21...0x7e, using: &random) }
      let draft = Draft(
        .set(Path("t/\(index)"), Node(.string(String(decoding: bytes, as: UTF8.self)))))
      answers.enter()
      Task(executorPreference: executor) { @Sendable in
        do throws(EngineError) {
          try await engine.write(draft)
        } catch {
          failures.note("\(error)")
        }
        answers.leave()
      }
    }
    // Behind the tasks: each has come to where it waits.
    executor.settle()
    let held = engine.heldThreadCount
    goesOn.signal()
    answers.wait()
    try engine.close()
    if let failure = failures.all.first { throw Violation(failure) }
    if held > 0 { throw Violation("\(held) threads waited for the disk") }
    let largest = disk.trace.filter { $0.kind == .write }.map(\.count).max() ?? 0
    try require(largest < 12_000, "\(largest) bytes had gathered")
  }

  @Sendable private static func taskAndBlock() throws {
    var options = EngineRecording.options()
    options.reservationTimeout = .milliseconds(20)
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    let executor = QueueExecutor()
    let place = Path("n")
    var runCount = 0
    engine.transact(at: place, refused: { _ in }) { input in
      runCount += 1
      guard runCount <= 4 else {
        return TransactionDecision(Draft(.set(place, Node(.integer(-1))))) { _ in }
      }
      let draft = Draft(.set(place, Node(.integer(Int64(runCount)))))
      Task(executorPreference: executor) { _ = try? await engine.write(draft) }
      // Not the answer, which comes with the next cycle: that it is there.
      while engine.integer(at: "n") != Int64(runCount) { usleep(200) }
      return TransactionDecision(Draft(.remove(place))) { _ in }
    }
    engine.pump()
    executor.settle()
    let found = engine.integer(at: "n")
    try engine.close()
    try require(runCount == 5 && found == -1, "\(runCount) runs, and there is \(found ?? 0)")
  }

  @Sendable private static func refusedInTurn() throws {
    let engine = try open()
    let notes = Notes()
    let draft = Draft(.set(Path("a"), Node(.integer(1))))
    engine.submit(draft, completion: notes.completion)
    engine.submit(
      Draft(.setPriority(Path("nothing"), .integer(1))), completion: notes.completion)
    engine.submit(draft, completion: notes.completion)
    engine.pump()
    try notes.require(["done", "refused", "done"])
  }

  // MARK: Transactions

  /// What it was given may still be lost.
  @Sendable private static func givesUp() throws {
    let engine = try open()
    let notes = Notes()
    engine.submit(Draft(.set(Path("n"), Node(.integer(1)))), completion: notes.completion)
    engine.transact(at: Path("n"), refused: { _ in }) { _ in
      TransactionDecision(nil) { _ in notes.note("gave up") }
    }
    let early = notes.all
    engine.pump()
    try require(
      early.isEmpty && notes.all == ["done", "gave up"], "noted \(early), then \(notes.all)")
  }

  @Sendable private static func blockCloses() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let notes = Notes()
    engine.transact(at: Path("n"), refused: { _ in notes.note("refused") }) { _ in
      engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: notes.completion)
      do throws(EngineError) {
        try engine.close()
      } catch {
        notes.note("\(error)")
      }
      return TransactionDecision(Draft(.set(Path("n"), Node(.integer(1))))) { result in
        if case .failure(.closed) = result { notes.note("too late") }
      }
    }
    let reopened = try EngineRecording.open(disk)
    let found = [reopened.integer(at: "a"), reopened.integer(at: "n")]
    try require(
      notes.all == ["done", "too late"] && found == [1, nil],
      "noted \(notes.all), and there is \(found)")
  }

  /// While the block ran a number changed, and came back as one of another type, which is equal.
  @Sendable private static func difference() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let place = Path("n")
    for index in 0..<50 {
      try engine.put("n/\(index)", .integer(Int64(index)))
    }
    engine.transact(at: place, refused: { _ in }) { input in
      let isDone = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        for scalar in [.integer(8), .double(7)] as [Scalar] {
          engine.submit(Draft(.set(Path("n/7"), Node(scalar))), completion: nil)
        }
        isDone.signal()
      }
      isDone.wait()
      var node = input
      node.graft(Node(.integer(-1)), at: Path("3"))
      return TransactionDecision(Draft(.set(place, node))) { _ in }
    }
    try engine.close()
    let root = try EngineRecording.open(disk).head.root
    let found = ["n/3", "n/7"].map { root.node(at: Path($0)).scalar }
    guard case .integer(-1)? = found[0], case .integer(7)? = found[1] else {
      throw Violation("there is \(found)")
    }
  }

  // MARK: The end

  @Sendable private static func closedEngine() throws {
    let engine = try open()
    try engine.close()
    let notes = Notes()
    let error = try requireError("synchronize() was answered as if it were open") {
      () throws(EngineError) in try engine.synchronize()
    }
    guard case .closed = error else { throw Violation("synchronize() was refused as \(error)") }
    engine.transact(at: Path("n"), refused: { _ in notes.note("refused") }) { _ in
      TransactionDecision(nil) { _ in notes.note("decided") }
    }
    try require(notes.all == ["refused"], "noted \(notes.all)")
  }

  // MARK: Closures for lines and figures

  @Sendable private static func hooksThatWait() throws {
    let isSynchronized = DispatchSemaphore(value: 0)
    let engine = Mutex<Engine?>(nil)
    var options = EngineOptions()
    options.metrics = { _ in
      // Only once: waiting for the engine makes it count again.
      guard let engine = engine.withLock({ $0.take() }) else { return }
      try? engine.synchronize()
      isSynchronized.signal()
    }
    let opened = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    engine.withLock { $0 = opened }
    opened.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    isSynchronized.wait()
    try opened.close()
  }

  @Sendable private static func slowHooks() throws {
    let (isLogging, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isDone = DispatchSemaphore(value: 0)
    let sum = Mutex(0.0)
    var options = EngineOptions()
    options.log = { event in
      guard event.message == "first" else { return }
      isLogging.signal()
      goesOn.wait()
    }
    let count = 3 * Instrumentation.limit
    options.metrics = { metric in
      let all = sum.withLock { sum in
        sum += metric.value
        return sum
      }
      if metric.name == "last" || Int(all) == count { isDone.signal() }
    }
    let calls = Instrumentation(options)
    calls.record(LogEvent(.info, "first"))
    isLogging.wait()
    for _ in 0..<count { calls.record(LogEvent(.info, "more")) }
    let waitingCount = calls.waitingCount
    for _ in 0..<count { calls.record(Metric("figure", .counter, 1)) }
    calls.record(Metric("last", .gauge, 0))
    goesOn.signal()
    isDone.wait()
    if waitingCount > Instrumentation.limit { throw Violation("\(waitingCount) calls waited") }
    let found = Int(sum.withLock { $0 })
    try require(found == count, "the sum is \(found), not \(count)")
  }
}
