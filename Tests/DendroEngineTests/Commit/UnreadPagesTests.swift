import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Foundation
import Testing

/// Writes and transactions that need pages which were not read since the database was opened, on a disk whose reads
/// take as long as the test wants: meanwhile other writes are admitted and acknowledged.
@Suite("No holder of the admission lock waits for the disk", .timeLimit(.minutes(5)))
struct UnreadPagesTests {
  private static func options(_ execution: EngineOptions.Execution) -> EngineOptions {
    var options = LoadingTests.options()
    options.execution = execution
    return options
  }

  private static func open(_ held: HeldDisk) throws -> Engine {
    try Engine.open(at: "/db", options: options(.thread), environment: held.environment)
  }

  /// A closed database: below `w` are branches whose leaves take chunks of their own in the checkpoint.
  ///
  /// - Returns: its tree.
  private static func database(_ held: HeldDisk) throws -> Node {
    let engine = try Engine.open(
      at: "/db", options: options(.inline), environment: held.environment)
    for branch in ["a", "b", "c"] {
      for leaf in 0..<50 {
        engine.submit(
          try set("w/\(branch)/leaf\(leaf)", .string("\(branch) \(leaf)")), completion: nil)
      }
    }
    engine.pump()
    try engine.checkpoint()
    // What is replayed at opening is in memory.
    engine.submit(try set("behind", .integer(0)), completion: nil)
    engine.pump()
    defer { try? engine.close() }
    return engine.head.root
  }

  /// A call that needs pages of `w`.
  enum Need: CaseIterable {
    case equalBranch, increment, removal, update, awaited, transaction, removingTransaction
    case block, blockThatCloses

    var writesInBlock: Bool { self == .block || self == .blockThatCloses }
  }

  /// What the call writes below `w`, in the order in which it is applied.
  private static func writes(_ need: Need, _ root: Node) throws -> [Draft] {
    let place = try path("w")
    let branch = root.node(at: place)
    switch need {
    case .equalBranch: return [Draft(.set(place, branch))]
    case .increment, .awaited:
      return [Draft(.increment(try path("w/a/leaf7"), .integer(1)))]
    case .removal, .removingTransaction: return [Draft(.remove(try path("w/b")))]
    case .update:
      return [
        Draft(
          .update(
            place,
            [
              .init(path: try path("a"), action: .set(branch.node(at: try path("a")))),
              .init(path: try path("c/leaf1"), action: .remove),
            ]))
      ]
    case .transaction:
      var branch = branch.node(at: try path("a"))
      branch.graft(Node(.integer(1)), at: try path("leaf7"))
      return [Draft(.set(try path("w/a"), branch))]
    case .block, .blockThatCloses:
      // The second one needs pages only once the first is applied: then both branches have four children.
      var larger = branch
      larger.graft(Node(.integer(1)), at: try path("d"))
      return [Draft(.set(try path("w/d"), Node(.integer(1)))), Draft(.set(place, larger))]
    }
  }

  /// Makes the call. It may wait for the disk.
  ///
  /// - Parameter failures: get its errors.
  private static func call(
    _ need: Need, _ writes: [Draft], _ engine: Engine, _ failures: Received<String>
  ) async throws {
    let decision = try decision()
    switch need {
    case .equalBranch, .increment, .removal, .update:
      await onThread { submit(writes, engine, failures) }
    case .awaited: for write in writes { try await engine.write(write) }
    case .transaction, .removingTransaction:
      await onThread { transact(writes[0], engine, failures) {} }
    case .block:
      await onThread {
        transact(decision, engine, failures) { submit(writes, engine, failures) }
      }
    case .blockThatCloses:
      await onThread {
        transact(decision, engine, failures) {
          submit(writes, engine, failures)
          do { try engine.close() } catch { failures.add("\(error)") }
        }
      }
    }
  }

  private static func decision() throws -> Draft { try set("decided", .bool(true)) }

  private static func submit(
    _ writes: [Draft], _ engine: Engine, _ failures: Received<String>
  ) {
    for write in writes {
      engine.submit(write) { result in
        if case .failure(let error) = result { failures.add("\(error)") }
      }
    }
  }

  private static func transact(
    _ decision: Draft, _ engine: Engine, _ failures: Received<String>, during: () -> Void
  ) {
    engine.transact(at: decision.write.path, refused: { failures.add("refused: \($0)") }) { _ in
      during()
      return TransactionDecision(decision) { result in
        if case .failure(let error) = result { failures.add("\(error)") }
      }
    }
  }

  @Test("while pages are read for a write, others are acknowledged", arguments: Need.allCases)
  func meanwhile(need: Need) async throws {
    let held = HeldDisk()
    let root = try Self.database(held)
    let writes = try Self.writes(need, root)
    let engine = try Self.open(held)
    let failures = Received<String>()
    if need.writesInBlock { _ = try engine.node(at: path("w/d")) }
    #expect(engine.statistics().unreadChunkCount > 0)
    held.hold(.readCheckpoint)
    async let call: Void = Self.call(need, writes, engine, failures)
    await onThread { held.waitForCall() }
    let other = try set("behind", .integer(1))
    await onThread {
      Self.submit([other], engine, failures)
      do { try engine.synchronize() } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
    #expect(try engine.view(at: path("behind")) == Node(.integer(1)))
    held.release()
    try await call
    if need != .blockThatCloses { try await engine.synchronize() }
    #expect(failures.all == (need == .blockThatCloses ? ["\(EngineError.closed)"] : []))
    var expected = root
    _ = expected.apply(.set(try path("behind"), Node(.integer(1))))
    if need == .block { _ = expected.apply(try Self.decision().write) }
    for write in writes { _ = expected.apply(write.write) }
    #expect(try engine.wholeHead().root == expected)
    if need != .blockThatCloses { try await engine.close() }
    let reopened = try Self.open(held)
    #expect(try reopened.wholeHead().root == expected)
    try await reopened.close()
  }

  @Test(
    "how a transaction has ended is not learned before all that its block has written can be read")
  func outcome() async throws {
    let held = HeldDisk()
    _ = try Self.database(held)
    let engine = try Self.open(held)
    let (decision, write) = (try Self.decision(), try set("w/a/leaf7", .integer(1)))
    _ = try engine.node(at: decision.write.path)
    let before = engine.head.lsn
    let learned = Received<LogSequenceNumber>()
    let received = Received<String>()
    held.hold(.readCheckpoint)
    async let transaction: Void = onThread {
      engine.transact(at: decision.write.path, refused: { received.add("\($0)") }) { _ in
        engine.submit(write) { _ in received.add("written") }
        return TransactionDecision(decision) { _ in
          learned.add(engine.head.lsn)
          received.add("decided")
        }
      }
    }
    // The transaction is over, and the write of its block waits for the disk.
    await onThread { held.waitForCall() }
    try await engine.synchronize()
    #expect(engine.statistics().durableLSN == before.next)
    #expect(received.all == [])
    held.release()
    await transaction
    try await engine.synchronize()
    #expect(received.all == ["decided", "written"])
    #expect(learned.all == [before.next.next])
    try await engine.close()
  }

  @Test(
    "random writes and transactions: the lock is free at each read of the checkpoint",
    arguments: Scale.seeds(6))
  func random(seed: UInt64) throws {
    let held = HeldDisk()
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = 3
    generator.wideKeyCount = 400
    var model = ModelTree()
    var readCount = 0
    for _ in 0..<6 {
      let engine = try Engine.open(
        at: "/db", options: Self.options(.inline), environment: held.environment)
      let reads = Received<LogSequenceNumber>()
      held.onRead { [unowned engine] in
        let isFree = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
          reads.add(engine.head.lsn)
          isFree.signal()
        }
        isFree.wait()
      }
      for _ in 0..<60 {
        var writes: [Write] = []
        for _ in 0..<(1 + generator.random.below(4)) {
          let write = generator.write()
          if case .setPriority = write { continue }
          writes.append(write)
        }
        if generator.random.oneIn(2) {
          let decision = Write.set(generator.path(maxCount: 2), Node(.integer(7)))
          model.apply(decision)
          engine.transact(at: decision.path, refused: { Issue.record("\($0), seed \(seed)") }) {
            _ in
            for write in writes { engine.submit(Draft(write), completion: nil) }
            return TransactionDecision(Draft(decision)) { _ in }
          }
        } else {
          for write in writes { engine.submit(Draft(write), completion: nil) }
        }
        for write in writes { model.apply(write) }
        if generator.random.oneIn(10) { engine.pump() }
      }
      engine.pump()
      held.onRead(nil)
      readCount += reads.all.count
      #expect(ModelTree(try engine.wholeHead().root) == model, "seed \(seed)")
      try engine.checkpoint()
      try engine.close()
    }
    #expect(readCount > 0)
  }
}
