import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Synchronization

/// Who waits for whom: tasks for the disk, writers for a transaction, everybody for an engine that is
/// closed. Nobody waits without end, and nobody is answered out of turn.
package enum Waiting {
  package static let sweep = Sweep.cases(
    "waiting",
    [
      Case("tasks write while too much waits for the disk", tasks),
      Case("a task waits for the block that waits for it", taskAndBlock),
      Case("a write that is refused among others", refusedInTurn),
      Case("a transaction that gives up", givesUp),
      Case("a block that writes and closes", blockCloses),
      Case("a transaction that writes back what was there", difference),
      Case("what is asked of a closed engine", closedEngine),
      Case("closures that wait for the engine", hooksThatWait),
      Case("closures that are slow", slowHooks),
      Case("a follower when the engine is closed", followerEnds),
      Case("a follower that is cancelled", followerCancelled),
      Case("what followers have read", followedLog),
    ])

  private static func open() throws(EngineError) -> Engine {
    try EngineRecording.open(SimulatedDisk(seed: 1))
  }

  // MARK: Writers

  /// The disk stands still at its first write until all tasks came to where they wait.
  @Sendable private static func tasks() throws -> String? {
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
    let failures = Told()
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
    if let failure = failures.all.first { return failure }
    if held > 0 { return "\(held) threads waited for the disk" }
    let largest = disk.trace.filter { $0.kind == .write }.map(\.count).max() ?? 0
    return largest < 12_000 ? nil : "\(largest) bytes had gathered"
  }

  @Sendable private static func taskAndBlock() throws -> String? {
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
    return runCount == 5 && found == -1 ? nil : "\(runCount) runs, and there is \(found ?? 0)"
  }

  @Sendable private static func refusedInTurn() throws -> String? {
    let engine = try open()
    let told = Told()
    let draft = Draft(.set(Path("a"), Node(.integer(1))))
    engine.submit(draft, completion: told.completion)
    engine.submit(
      Draft(.setPriority(Path("nothing"), .integer(1))), completion: told.completion)
    engine.submit(draft, completion: told.completion)
    engine.pump()
    return told.all == ["done", "refused", "done"] ? nil : "told \(told.all)"
  }

  // MARK: Transactions

  /// What it was given may still be lost.
  @Sendable private static func givesUp() throws -> String? {
    let engine = try open()
    let told = Told()
    engine.submit(Draft(.set(Path("n"), Node(.integer(1)))), completion: told.completion)
    engine.transact(at: Path("n"), refused: { _ in }) { _ in
      TransactionDecision(nil) { _ in told.note("gave up") }
    }
    let early = told.all
    engine.pump()
    return early.isEmpty && told.all == ["done", "gave up"]
      ? nil : "told \(early), then \(told.all)"
  }

  @Sendable private static func blockCloses() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let told = Told()
    engine.transact(at: Path("n"), refused: { _ in told.note("refused") }) { _ in
      engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: told.completion)
      do throws(EngineError) {
        try engine.close()
      } catch {
        told.note("\(error)")
      }
      return TransactionDecision(Draft(.set(Path("n"), Node(.integer(1))))) { result in
        if case .failure(.closed) = result { told.note("too late") }
      }
    }
    let reopened = try EngineRecording.open(disk)
    let found = [reopened.integer(at: "a"), reopened.integer(at: "n")]
    return told.all == ["done", "too late"] && found == [1, nil]
      ? nil : "told \(told.all), and there is \(found)"
  }

  /// While the block ran a number changed, and came back as one of another type, which is equal.
  @Sendable private static func difference() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let place = Path("n")
    for index in 0..<50 {
      if let error = engine.put("n/\(index)", .integer(Int64(index))) { return "\(error)" }
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
      return "there is \(found)"
    }
    return nil
  }

  // MARK: The end

  @Sendable private static func closedEngine() throws -> String? {
    let engine = try open()
    try engine.close()
    let told = Told()
    do throws(EngineError) {
      try engine.synchronize()
      return "synchronize() was answered as if it were open"
    } catch {
      guard case .closed = error else { return "synchronize() was refused as \(error)" }
    }
    engine.transact(at: Path("n"), refused: { _ in told.note("refused") }) { _ in
      TransactionDecision(nil) { _ in told.note("decided") }
    }
    return told.all == ["refused"] ? nil : "a transaction was told \(told.all)"
  }

  // MARK: Closures for lines and figures

  @Sendable private static func hooksThatWait() throws -> String? {
    let isTold = DispatchSemaphore(value: 0)
    let engine = Mutex<Engine?>(nil)
    var options = EngineOptions()
    options.metrics = { _ in
      // Only once: waiting for the engine makes it count again.
      guard let engine = engine.withLock({ $0.take() }) else { return }
      try? engine.synchronize()
      isTold.signal()
    }
    let opened = try EngineRecording.open(SimulatedDisk(seed: 1), options)
    engine.withLock { $0 = opened }
    opened.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    isTold.wait()
    try opened.close()
    return nil
  }

  @Sendable private static func slowHooks() throws -> String? {
    let (isTelling, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isDone = DispatchSemaphore(value: 0)
    let sum = Mutex(0.0)
    var options = EngineOptions()
    options.log = { event in
      guard event.message == "first" else { return }
      isTelling.signal()
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
    isTelling.wait()
    for _ in 0..<count { calls.record(LogEvent(.info, "more")) }
    let waitingCount = calls.waitingCount
    for _ in 0..<count { calls.record(Metric("figure", .counter, 1)) }
    calls.record(Metric("last", .gauge, 0))
    goesOn.signal()
    isDone.wait()
    if waitingCount > Instrumentation.limit { return "\(waitingCount) calls waited" }
    let found = Int(sum.withLock { $0 })
    return found == count ? nil : "the sum is \(found), not \(count)"
  }
}
