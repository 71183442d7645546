import DendroStorage
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

@Suite("Limits and refusals")
struct LimitTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(_ options: EngineOptions = .inline) throws -> Engine {
    try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  @Test("a write over the limit is refused, and leaves no trace", arguments: [false, true])
  func writeTooLarge(isTree: Bool) throws {
    var options = EngineOptions.inline
    options.writeByteLimit = 1000
    let engine = try open(options)
    let received = Received<Result<LogSequenceNumber?, EngineError>>()
    let large = Node(.string(String(repeating: "x", count: 1001)))
    var builder = NodeBuilder()
    builder.append(try Key("k"), large)
    engine.submit(try set("before", .integer(1))) { received.add($0) }
    engine.submit(
      Draft(.set(try path("a"), isTree ? builder.finish(priority: nil) : large))
    ) { received.add($0) }
    engine.submit(try set("behind", .integer(1))) { received.add($0) }
    engine.pump()
    #expect(received.all.count == 3)
    guard case .failure(.writeTooLarge(_, limit: 1000)) = received.all[1] else {
      Issue.record("expected a refusal, found \(received.all[1])")
      return
    }
    #expect(engine.head.lsn == LogSequenceNumber(2))
    let root = engine.head.root
    try engine.close()
    let again = try open()
    #expect(again.head.root == root)
    try again.close()
  }

  @Test("a write over the limit is refused in memory too", arguments: [false, true])
  func writeTooLargeInMemory(isDeferred: Bool) throws {
    var options = EngineOptions.inline
    options.writeByteLimit = 2000
    let engine = Engine.inMemory(options: options)
    var builder = NodeBuilder()
    builder.append(try Key("at"), Node(.integer(0)))
    builder.append(try Key("k"), Node(.string(String(repeating: "x", count: 2001))))
    var draft = Draft(.set(try path("a"), builder.finish(priority: nil)))
    if isDeferred { draft.deferred = [.init(path: try path("at"), value: .timestamp)] }
    let received = Received<Result<LogSequenceNumber?, EngineError>>()
    engine.submit(draft) { received.add($0) }
    engine.submit(try set("behind", .integer(1))) { received.add($0) }
    engine.pump()
    guard case .failure(.writeTooLarge(_, limit: 2000)) = received.all.first else {
      Issue.record("expected a refusal, found \(received.all)")
      return
    }
    #expect(engine.head.lsn == LogSequenceNumber(1))
    #expect(engine.head.root.childCount == 1)
    try engine.close()
  }

  @Test("over the memory limit only removals are admitted")
  func memory() throws {
    var options = EngineOptions.inline
    options.memoryByteLimit = 200_000
    let engine = try open(options)
    var refused: Int?
    for i in 0..<5_000 where refused == nil {
      let received = Received<EngineError>()
      engine.submit(try set("k\(i)", .string(incompressible(100)))) {
        if case .failure(let error) = $0 { received.add(error) }
      }
      engine.pump()
      if case .memoryLimit = received.all.first { refused = i }
    }
    let count = try #require(refused)
    #expect(count > 100)
    #expect(engine.head.root.memory().byteCount < 2 * 200_000)
    for i in 0..<count { engine.submit(Draft(.remove(try path("k\(i)"))), completion: nil) }
    engine.pump()
    let received = Received<LogSequenceNumber?>()
    engine.submit(try set("again", .integer(1))) {
      if case .success(let l) = $0 { received.add(l) }
    }
    engine.pump()
    #expect(received.all.count == 1)
    try engine.close()
  }

  /// Writes to `engine` until it is full.
  ///
  /// - Returns: how many writes were admitted.
  private func fill(_ engine: Engine, _ prefix: String) throws -> Int {
    let refused = Received<EngineError>()
    var count = 0
    while refused.all.isEmpty, count < 5_000 {
      // A few wide objects, many small ones and long strings: pages of all kinds, and chunks below chunks.
      let place = count % 3 == 0 ? "wide/\(prefix)\(count)" : "small/\(prefix)\(count)/a/b"
      let text = incompressible(count % 50 == 0 ? 2_000 : 80)
      engine.submit(try set(place, .string(text))) {
        if case .failure(let error) = $0 { refused.add(error) }
      }
      engine.pump()
      count += 1
    }
    guard case .memoryLimit = refused.all.first else {
      Issue.record("expected a refusal, found \(refused.all)")
      return count
    }
    return count - 1
  }

  @Test(
    "the memory limit holds however often the database is opened, whatever was read of it",
    arguments: [EngineOptions.Loading.onDemand, .whole], 0..<3)
  func memoryAfterOpening(loading: EngineOptions.Loading, reads: Int) throws {
    var options = EngineOptions.inline
    options.memoryByteLimit = 200_000
    options.checkpointChunkByteLimit = 4_000
    options.loading = loading
    var engine = try open(options)
    let count = try fill(engine, "k")
    var added = 0
    for round in 0..<5 {
      try engine.checkpoint()
      try engine.close()
      engine = try open(options)
      if reads == 1 {
        // Every tenth: some chunks are read, and of these some pages are in use.
        for number in stride(from: 0, to: count, by: 10) {
          _ = try engine.view(at: path("wide/k\(number)"))
        }
      }
      if reads == 2 { _ = try engine.wholeHead() }
      added += try fill(engine, "again\(round)-")
    }
    #expect(added < count / 4, "\(added) beside \(count)")
    let byteCount = try engine.wholeHead().root.memory().byteCount
    #expect(byteCount < 200_000 * 65 / 64 + 4_000)
    try engine.close()
  }

  @Test("what was removed before it was read no longer counts towards the memory limit")
  func memoryAfterRemoval() throws {
    var options = EngineOptions.inline
    options.memoryByteLimit = 200_000
    options.checkpointChunkByteLimit = 4_000
    var engine = try open(options)
    let count = try fill(engine, "k")
    try engine.checkpoint()
    try engine.close()
    engine = try open(options)
    engine.submit(Draft(.remove(try path("small"))), completion: nil)
    let again = try fill(engine, "again")
    #expect(again > count / 3 && again < count, "\(again) after \(count)")
    engine.submit(Draft(.remove(.root)), completion: nil)
    #expect(try abs(fill(engine, "k") - count) < count / 10)
    try engine.close()
  }

  @Test("a priority needs data, conflicting update paths are refused")
  func validation() throws {
    let engine = try open()
    let received = Received<EngineError>()
    let notify: Completion = { if case .failure(let error) = $0 { received.add(error) } }
    engine.submit(Draft(.setPriority(try path("nothing"), .integer(1))), completion: notify)
    engine.submit(
      Draft(
        .update(
          .root,
          [
            .init(path: try path("a"), action: .set(Node(.integer(1)))),
            .init(path: try path("a/b"), action: .remove),
          ])), completion: notify)
    engine.pump()
    #expect(received.all.count == 2)
    #expect(received.all.contains(.noData(try path("nothing"))))
    #expect(engine.head.lsn == .zero)
    try engine.close()
  }

  @Test("after close everything is refused, and views stay")
  func closed() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    try engine.close()
    try engine.close()
    let received = Received<EngineError>()
    engine.submit(try set("a", .integer(2))) { if case .failure(let e) = $0 { received.add(e) } }
    #expect(received.all == [.closed])
    #expect(throws: EngineError.closed) { try engine.synchronize() }
    #expect(throws: EngineError.closed) { try engine.checkpoint() }
    #expect(try engine.view(at: path("a")).scalar == .integer(1))
  }

  @Test("a weaker durability acknowledges without a synchronize; the barrier makes it durable")
  func weak() throws {
    var options = EngineOptions.inline
    options.durability = .none
    let engine = try open(options)
    let received = Received<LogSequenceNumber?>()
    engine.submit(try set("a", .integer(1))) { if case .success(let l) = $0 { received.add(l) } }
    engine.pump()
    #expect(received.all.count == 1)
    #expect(engine.statistics().durableLSN == .zero)
    try engine.synchronize()
    #expect(engine.statistics().durableLSN == LogSequenceNumber(1))
    try engine.close()
  }

  @Test("under a weaker durability a failed synchronize names the writes in doubt")
  func doubt() throws {
    var options = EngineOptions.inline
    options.durability = .none
    let engine = try open(options)
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.submit(try set("b", .integer(1)), completion: nil)
    engine.pump()
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    do {
      try engine.synchronize()
      Issue.record("the synchronize did not fail")
    } catch {
      guard case .poisoned(_, let range) = error else {
        Issue.record("expected a poisoned engine, found \(error)")
        return
      }
      #expect(range == LogSequenceNumber(1)...LogSequenceNumber(2))
    }
    #expect(try engine.view(at: path("b")).scalar == .integer(1))
    try? engine.close()
  }

  @Test("the interval is kept without anybody asking")
  func interval() async throws {
    var options = EngineOptions()
    options.durability = .interval(.milliseconds(5))
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    let lsn = try await engine.write(try set("a", .integer(1)))
    while engine.statistics().durableLSN < lsn! { await Task.yield() }
    try await engine.close()
  }

  @Test("a database in memory keeps to the memory limit, whatever is written", arguments: 0..<3)
  func memoryWithoutFiles(kind: Int) throws {
    var options = EngineOptions.inline
    options.memoryByteLimit = 4 << 20
    let engine = Engine.inMemory(options: options)
    let text = incompressible(kind == 0 ? 1000 : 100_000)
    var builder = NodeBuilder()
    builder.append(try Key("at"), Node(.integer(0)))
    builder.append(try Key("text"), Node(.string(text)))
    let tree = builder.finish(priority: nil)
    let isRefused = Received<EngineError>()
    for number in 0..<10_000 where isRefused.all.isEmpty {
      let place = try path("k\(number)")
      var draft = Draft(.set(place, kind == 1 ? tree : Node(.string(text))))
      if kind == 2 {
        draft = Draft(
          .set(place, tree), deferred: [.init(path: try path("at"), value: .timestamp)])
      }
      engine.submit(draft) { if case .failure(let error) = $0 { isRefused.add(error) } }
      engine.pump()
    }
    guard case .memoryLimit = isRefused.all.first else {
      Issue.record("expected a refusal, found \(isRefused.all)")
      return
    }
    #expect(engine.head.root.memory().byteCount < 5 << 20)
  }

  @Test("over the memory limit the tree is not measured for each removal")
  func measures() throws {
    var gauge = MemoryGauge(limit: 100_000)
    var root = Node.empty
    func apply(_ write: Write) -> EngineError? {
      let facts = EncodedWrite(write).facts
      if gauge.isMeasureDue(for: facts) {
        gauge.beginMeasure()
        gauge.endMeasure(root.memory().byteCount)
      }
      if let refusal = gauge.refusal(for: facts) { return refusal }
      var changes: [Change] = []
      root.apply(write, recording: &changes)
      gauge.admitted(facts, encodedByteCount: 110) { changes.map(\.replaced) }
      return nil
    }
    let text = Node(.string(incompressible(100)))
    // Far over it, as a database is that was opened with a smaller limit.
    for number in 0..<5_000 { _ = root.apply(.set(try path("k\(number)"), text)) }
    for number in 0..<1_000 { _ = apply(.set(try path("n\(number)"), text)) }
    let before = gauge.measureCount
    #expect(before > 0)
    var removedCount = 0
    for number in 0..<5_000 {
      #expect(apply(.remove(try path("k\(number)"))) == nil)
      removedCount += 1
      if apply(.set(try path("one"), text)) == nil { break }
    }
    #expect(root.memory().byteCount <= 100_000 * 65 / 64)
    #expect(removedCount > 3_000)
    #expect(gauge.measureCount - before < 50)
  }
}
