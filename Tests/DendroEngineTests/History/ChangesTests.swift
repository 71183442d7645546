import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import DendroTestSupport
import Testing

@Suite("Following the log")
struct ChangesTests {
  @Test("from every write on, the writes behind it come in order and lead to the oracle's trees")
  func everyStart() throws {
    for seed in [1, 2] as [UInt64] {
      let model = try HistoryModel(seed: seed, .all)
      try model.run(150)
      try model.engine.synchronize()
      for start in stride(from: 0, through: model.last, by: Scale.stride(7)) {
        #expect(try model.problem(ofChangesSince: start, in: model.engine) == nil, "seed \(seed)")
      }
      for place in ["a", "a/b", "wide", "0/z"] {
        #expect(
          try model.problem(ofChangesSince: 3, in: model.engine, at: path(place)) == nil,
          "seed \(seed), \(place)")
      }
      try model.reopen()
      #expect(try model.problem(ofChangesSince: 0, in: model.engine) == nil, "seed \(seed)")
    }
  }

  @Test("a write concerns what it replaces, what is below and what is above; an update its entries")
  func concerns() throws {
    let place = try path("a/b")
    let leaf = Node(.bool(true))
    func update(_ base: String, _ paths: [String]) throws -> Write {
      .update(try path(base), try paths.map { .init(path: try path($0), action: .set(leaf)) })
    }
    for (write, concerns) in [
      (.set(try path("a/b"), leaf), true), (.set(try path("a"), leaf), true),
      (.set(.root, .empty), true), (.remove(try path("a/b/c/d")), true),
      (.increment(try path("a/bc"), .integer(1)), false), (.setPriority(try path("b"), nil), false),
      (try update("/", ["a/c", "b"]), false), (try update("/", ["a/c", "a/b/x"]), true),
      (try update("a", ["b"]), true), (try update("a/b/c", ["d"]), true),
      (try update("b", ["a"]), false),
    ] as [(Write, Bool)] {
      #expect(write.concerns(place) == concerns, "\(write)")
      #expect(write.concerns(.root))
    }
  }

  /// Takes writes until it has seen `count`, or there are no more.
  private static func take(_ count: Int, _ reader: ChangeReader) async throws -> [LoggedWrite] {
    var found: [LoggedWrite] = []
    while found.count < count, let page = try await reader.next() { found += page }
    return found
  }

  @Test("beside writers, checkpoints and new segments, several followers see the same")
  func besideWriters() async throws {
    let disk = SimulatedDisk(seed: 3)
    var options = EngineOptions()
    options.segmentByteLimit = 20_000
    options.checkpointByteMin = 30_000
    options.checkpointFactor = 1
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    let writerCount = 4
    let writeCount = 300
    let seen = try await withThrowingTaskGroup(of: [LoggedWrite].self) { group in
      for _ in 0..<3 {
        let reader = try engine.changes(since: .zero)
        group.addTask { try await Self.take(writerCount * writeCount, reader) }
      }
      for writer in 0..<writerCount {
        group.addTask {
          for number in 0..<writeCount {
            try await engine.write(set("\(writer)/\(number % 7)", .string(incompressible(number))))
          }
          return []
        }
      }
      return try await group.reduce(into: [[LoggedWrite]]()) { if !$1.isEmpty { $0.append($1) } }
    }
    let numbers = (1...UInt64(writerCount * writeCount)).map { LogSequenceNumber($0) }
    #expect(seen.count == 3)
    for writes in seen {
      #expect(writes.map(\.lsn) == numbers)
      var tree = Node.empty
      for write in writes { _ = tree.apply(write.write) }
      #expect(tree == engine.head.root)
    }
    try await engine.close()
  }

  @Test("a follower continues where an earlier one ended, also in a later process")
  func resuming() async throws {
    let disk = SimulatedDisk(seed: 4)
    var options = EngineOptions()
    options.history = .all
    options.segmentByteLimit = 2000
    var last = LogSequenceNumber.zero
    var found: [LogSequenceNumber] = []
    for session in 0..<5 {
      let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
      for number in 0..<20 {
        try await engine.write(set("\(session)/\(number)", .string(incompressible(80))))
      }
      // Some sessions read less than there is.
      let reader = try engine.changes(since: last)
      let wanted = session == 4 ? 100 - found.count : 7 * session
      let page = try await Self.take(wanted, reader).prefix(wanted)
      found += page.map(\.lsn)
      last = page.last?.lsn ?? last
      try await engine.checkpoint()
      try await engine.close()
    }
    #expect(found == (1...100).map { LogSequenceNumber(UInt64($0)) })
  }

  @Test("what is not durable does not show, and what the disk refused never does")
  func durableOnly() async throws {
    let disk = SimulatedDisk(seed: 5)
    var options = EngineOptions.inline
    options.durability = .none
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    for number in 0..<Int64(5) { engine.submit(try set("k", .integer(number)), completion: nil) }
    try await engine.synchronize()
    for number in 5..<Int64(9) { engine.submit(try set("k", .integer(number)), completion: nil) }
    engine.pump()
    #expect(engine.head.lsn == LogSequenceNumber(9))
    #expect(engine.statistics().durableLSN == LogSequenceNumber(5))
    let reader = try engine.changes(since: .zero)
    #expect(try await reader.next()?.map(\.lsn.rawValue) == [1, 2, 3, 4, 5])
    // The synchronize fails: nothing more may ever come.
    disk.inject(DiskFault(.failedSynchronize(.reverted), of: [.synchronize], at: 1))
    await #expect(throws: EngineError.self) { try await engine.synchronize() }
    let waiting = Task { try await reader.next() }
    await #expect(throws: EngineError.self) { try await engine.close() }
    #expect(try await waiting.value == nil)
  }

  @Test(
    "writes that a full disk has undone are left out, those that got their numbers later are not")
  func takenBack() throws {
    let disk = SimulatedDisk(seed: 6)
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    engine.submit(try set("k", .string("first")), completion: nil)
    engine.pump()
    let reader = try engine.changes(since: .zero)
    #expect(try reader.page(upTo: engine.statistics().durableLSN).count == 1)
    disk.freeSpace = 10
    engine.submit(try set("k", .string(incompressible(300_000))), completion: nil)
    engine.pump()
    disk.freeSpace = nil
    engine.submit(try set("x", .bool(true)), completion: nil)
    engine.pump()
    for number in 0..<Int64(3) { engine.submit(try set("k", .integer(number)), completion: nil) }
    engine.pump()
    let writes = try reader.page(upTo: engine.statistics().durableLSN)
    var tree = Node.empty
    for write in [try set("k", .string("first")).write] + writes.map(\.write) {
      _ = tree.apply(write)
    }
    #expect(writes.first?.lsn == LogSequenceNumber(2))
    #expect(tree == engine.head.root)
  }

  @Test("one that waits ends when its task is cancelled, and when the engine is closed")
  func ending() async throws {
    let disk = SimulatedDisk(seed: 7)
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    try await engine.write(set("a", .bool(true)))
    let cancelled = Task {
      let reader = try engine.changes(since: .zero)
      var count = 0
      while let page = try await reader.next() { count += page.count }
      return count
    }
    let closed = Task {
      let reader = try engine.changes(since: .zero)
      var count = 0
      while let page = try await reader.next() { count += page.count }
      return count
    }
    cancelled.cancel()
    #expect(try await cancelled.value <= 1)
    try await engine.write(set("a", .bool(false)))
    let reader = try engine.changes(since: .zero)
    #expect(try await Self.take(2, reader).count == 2)
    try await engine.close()
    #expect(try await reader.next() == nil)
    #expect(try await closed.value <= 2)
    #expect(throws: EngineError.closed) { _ = try engine.changes(since: .zero) }
  }

  @Test("opened for reading only it ends behind the last write that is known to be durable")
  func readOnly() async throws {
    let model = try HistoryModel(seed: 8, .all)
    try model.run(80)
    try await model.engine.close()
    let reader = try Engine.open(
      at: "/db", options: .inline, environment: model.disk.environment, mode: .readOnly)
    let changes = try reader.changes(since: .zero)
    #expect(try await Self.take(.max, changes).count == model.last)
    #expect(try model.problem(ofChangesSince: 0, in: reader) == nil)
    try await reader.close()
  }

  @Test("a number that no write has yet, or that the log no longer has, is refused with the range")
  func outOfRange() async throws {
    let model = try HistoryModel(seed: 9, .none)
    try model.run(250)
    try await model.engine.checkpoint()
    let range = try await model.engine.historyRange()
    #expect(range.oldest > LogSequenceNumber(1))
    for lsn in [LogSequenceNumber.zero, range.newest.next] {
      let reader = try model.engine.changes(since: lsn)
      await #expect(throws: EngineError.outOfHistory(.lsn(lsn), range)) { try await reader.next() }
    }
    let oldest = Int(range.oldest.rawValue)
    #expect(try model.problem(ofChangesSince: oldest, in: model.engine) == nil)
  }

  @Test("the log that a slow follower has not read is kept; after a purge it gets an error")
  func slowFollower() async throws {
    let model = try HistoryModel(seed: 10, .none)
    try model.run(30)
    model.submit()
    model.engine.pump()
    let start = Int(try await model.engine.historyRange().oldest.rawValue)
    let slow = try model.engine.changes(since: LogSequenceNumber(UInt64(start)))
    let first = try await slow.next() ?? []
    let position = Int(slow.position.rawValue)
    // The engine writes much more, and would have removed the log by now.
    for _ in 0..<8 {
      for _ in 0..<20 { model.submit() }
      try await model.engine.checkpoint()
    }
    #expect(Int(try await model.engine.historyRange().oldest.rawValue) <= position)
    let rest = try await Self.take(model.last - position, slow)
    #expect(first.count == position - start)
    #expect(rest.map { Int($0.lsn.rawValue) } == Array(position + 1...model.last))
    let late = try model.engine.changes(since: LogSequenceNumber(UInt64(model.last - 1)))
    #expect(try await late.next()?.count == 1)
    // No follower is behind any more: the log shrinks again.
    for _ in 0..<2 {
      model.submit()
      try await model.engine.checkpoint()
    }
    #expect(Int(try await model.engine.historyRange().oldest.rawValue) > position)
    for _ in 0..<30 { model.submit() }
    model.engine.pump()
    try await model.engine.purgeHistory()
    let range = try await model.engine.historyRange()
    for reader in [late, slow] {
      await #expect(throws: EngineError.outOfHistory(.lsn(reader.position), range)) {
        try await reader.next()
      }
    }
  }
}
