import DendroTestSupport
import DendroTesting
import Foundation
import Synchronization
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

@Suite("Engines that share a log")
struct SharingTests {
  let log = MemoryLog()
  let disk = SimulatedDisk(seed: 1)
  private let databaseID = DatabaseID(high: 1, low: 2)

  private func open(_ number: Int, showsAtOnce: Bool = true) throws -> Engine {
    try Engine.open(
      at: "/\(number)", options: .inline, environment: disk.environment,
      sharing: Sharing(
        log: log.member(number), databaseID: databaseID, showsAtOnce: showsAtOnce))
  }

  private func leader(_ number: Int = 1, showsAtOnce: Bool = true) throws -> Engine {
    let engine = try open(number, showsAtOnce: showsAtOnce)
    try log.feed(engine)
    log.setLeader(number)
    #expect(engine.beginLeading())
    return engine
  }

  /// Submits writes and waits for their results.
  private func results(
    _ engine: Engine, _ writes: [Draft]
  ) -> [Result<LogSequenceNumber?, EngineError>] {
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    for write in writes { engine.submit(write) { results.add($0) } }
    engine.pump()
    return results.all
  }

  /// What the log of the engine's directory has.
  private func logged(_ engine: Engine) throws -> [String] {
    try engine.changes(since: .zero).page(upTo: engine.head.lsn).map {
      "\($0.lsn) \($0.time) \($0.write)"
    }
  }

  @Test("writes are refused until the engine leads")
  func beforeLeading() throws {
    let engine = try open(1)
    let found = results(engine, [try set("a", .integer(1))])
    guard case .failure(.unavailable)? = found.first else {
      Issue.record("expected a refusal, found \(found)")
      return
    }
    #expect(!engine.isLeading)
    #expect(engine.head.root.isEmpty)
    #expect(log.records.isEmpty)
    try engine.close()
    #expect(log.closed == [1])
  }

  @Test("a write is acknowledged once the shared log has it, and durable then")
  func acknowledged() throws {
    let engine = try leader()
    let found = results(engine, [try set("a", .integer(1)), try set("b", .integer(2))])
    #expect(found == [.success(LogSequenceNumber(1)), .success(LogSequenceNumber(2))])
    #expect(log.lastLSN == LogSequenceNumber(2))
    #expect(engine.statistics().durableLSN == LogSequenceNumber(2))
    // Nothing was synchronized for it.
    #expect(engine.statistics().synchronizeCount == 0)
    #expect(try engine.changes(since: .zero).page(upTo: LogSequenceNumber(2)).count == 2)
    try engine.close()
    let again = try open(1)
    #expect(try again.view(at: path("b")).scalar == .integer(2))
    try again.close()
  }

  @Test("what the shared log refuses is taken back, for listeners as well")
  func refused() throws {
    let engine = try leader()
    #expect(results(engine, [try set("kept", .integer(1))]) == [.success(LogSequenceNumber(1))])
    let mirror = Mirror()
    engine.setObserver(mirror)
    log.answer(.refused("another one leads"))
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    engine.submit(try set("lost", .integer(2))) { results.add($0) }
    engine.submit(Draft(.remove(try path("kept")))) { results.add($0) }
    #expect(engine.head.root.childCount == 1)
    #expect(try engine.view(at: path("lost")).scalar == .integer(2))
    engine.pump()
    #expect(
      results.all == [
        .failure(.unavailable("another one leads")), .failure(.unavailable("another one leads")),
      ])
    #expect(mirror.undoneCount == 1)
    #expect(try engine.view(at: path("kept")).scalar == .integer(1))
    #expect(try engine.view(at: path("lost")).isEmpty)
    #expect(!engine.isLeading)
    #expect(engine.head.lsn == LogSequenceNumber(1))
    // The numbers go on without a gap.
    #expect(engine.beginLeading())
    #expect(self.results(engine, [try set("c", .integer(3))]) == [.success(LogSequenceNumber(2))])
    try engine.close()
    let again = try open(1)
    #expect(again.head.lsn == LogSequenceNumber(2))
    #expect(try again.view(at: path("lost")).isEmpty)
    try again.close()
  }

  @Test("others take what the leader has appended: the same tree, numbers, times and files")
  func taken() throws {
    let first = try leader()
    let second = try open(2)
    let commits = CommitLog(.empty)
    second.setObserver(commits)
    var generator = WriteGenerator(seed: 7)
    for _ in 0..<40 {
      let writes = (0..<5).map { _ in Draft(generator.write()) }
      _ = results(first, writes)
      try log.feed(second)
      #expect(second.head.root == first.head.root)
      #expect(commits.root == first.head.root)
    }
    #expect(second.head.lsn == first.head.lsn)
    #expect(second.statistics().durableLSN == first.head.lsn)
    #expect(try logged(second) == logged(first))
    let state = first.head
    try first.close()
    try second.close()
    let again = try open(2)
    #expect(again.head.root == state.root)
    #expect(again.head.lsn == state.lsn)
    try again.close()
  }

  @Test("of a damaged record nothing is taken", arguments: 0..<2)
  func damaged(kind: Int) throws {
    let first = try leader()
    _ = results(first, [try set("a", .integer(1)), try set("b", .string("text"))])
    let record = try #require(log.records.first)
    let payload = kind == 0 ? Array(record.payload.dropLast()) : record.payload + [0]
    let second = try open(2)
    _ = payload.withUnsafeBytes { payload in
      #expect(throws: EngineError.self) {
        try second.take([
          SharedRecord(
            firstLSN: record.firstLSN, count: record.count, baseTime: record.baseTime,
            payload: payload)
        ])
      }
    }
    #expect(second.head.root.isEmpty)
    try log.feed(second)
    #expect(second.head.root == first.head.root)
    try first.close()
    try second.close()
  }

  @Test("an engine that stops leading takes back what waits")
  func endLeading() throws {
    let engine = try leader()
    _ = results(engine, [try set("kept", .integer(1))])
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    engine.submit(try set("waiting", .integer(2))) { results.add($0) }
    try engine.endLeading("another server leads")
    #expect(results.all == [.failure(.unavailable("another server leads"))])
    #expect(log.lastLSN == LogSequenceNumber(1))
    #expect(try engine.view(at: path("waiting")).isEmpty)
    let after = self.results(engine, [try set("after", .integer(3))])
    #expect(after == [.failure(.unavailable("another server leads"))])
    try engine.close()
  }

  @Test("while leading pauses, new writes are refused and earlier ones still stand")
  func paused() throws {
    let engine = try leader()
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    engine.submit(try set("a", .integer(1))) { results.add($0) }
    engine.pauseLeading("no answer")
    engine.submit(try set("b", .integer(2))) { results.add($0) }
    engine.pump()
    // What is refused does not wait for the log.
    #expect(results.all == [.failure(.unavailable("no answer")), .success(LogSequenceNumber(1))])
    #expect(!engine.resumeLeading { false })
    #expect(!engine.isLeading)
    #expect(engine.resumeLeading { true })
    #expect(self.results(engine, [try set("c", .integer(3))]) == [.success(LogSequenceNumber(2))])
    try engine.close()
  }

  @Test("what the shared log has is acknowledged though the disk of the copy refuses it")
  func copyFails() throws {
    let engine = try leader()
    _ = results(engine, [try set("a", .integer(1))])
    disk.inject(DiskFault(.error(EIO), of: [.write], at: 1, isPermanent: true, pathPart: "/1/"))
    let found = results(engine, [try set("b", .integer(2))])
    #expect(found == [.success(LogSequenceNumber(2))])
    #expect(log.lastLSN == LogSequenceNumber(2))
    guard case .failure(.poisoned)? = results(engine, [try set("c", .integer(3))]).first else {
      Issue.record("the engine goes on without its copy")
      return
    }
    #expect(try engine.view(at: path("b")).scalar == .integer(2))
    disk.removeFaults()
    try? engine.close()
    let again = try open(1)
    #expect(again.head.lsn == LogSequenceNumber(1))
    try log.feed(again)
    #expect(try again.view(at: path("b")).scalar == .integer(2))
    try again.close()
  }

  @Test("closing says that the outcome is not known, if it is not")
  func undecided() throws {
    let engine = try leader()
    let results = Received<Result<LogSequenceNumber?, EngineError>>()
    log.answer(.undecided("no answer"))
    engine.submit(try set("a", .integer(1))) { results.add($0) }
    #expect(throws: EngineError.self) { try engine.close() }
    #expect(results.all == [.failure(.undecided("no answer"))])
    #expect(log.closed == [1])
  }

  @Test("the directory of another database is refused")
  func otherDatabase() throws {
    try Engine.open(at: "/1", options: .inline, environment: disk.environment).close()
    #expect(throws: EngineError.self) { try open(1) }
  }

  @Test("checkpoints and transactions work in a leader, checkpoints in a follower as well")
  func checkpoints() throws {
    let first = try leader()
    let second = try open(2)
    _ = results(first, try (0..<50).map { try set("k\($0)", .integer(1)) })
    try log.feed(second)
    try first.checkpoint()
    try second.checkpoint()
    _ = results(first, [try set("behind", .integer(2))])
    try log.feed(second)
    try second.close()
    let again = try open(2)
    #expect(again.report.checkpointLSN == LogSequenceNumber(50))
    #expect(again.head.root == first.head.root)
    try first.close()
    try again.close()
  }

  @Test("an engine that shows what is covered shows no write before the log has it, to no one")
  func covered() throws {
    let engine = try leader(showsAtOnce: false)
    let mirror = CommitLog(.empty)
    engine.setObserver(mirror)
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.submit(try set("b", .integer(2)), completion: nil)
    #expect(engine.head.root.isEmpty)
    #expect(engine.head.lsn == .zero)
    #expect(engine.pin().lsn == .zero)
    #expect(try engine.view(at: .root).isEmpty)
    #expect(try engine.wholeHead().root.isEmpty)
    #expect(try engine.state(at: .time(.max))?.root.isEmpty == true)
    #expect(mirror.lsns.isEmpty)
    // What is written builds on what is not shown yet.
    engine.submit(Draft(.increment(try path("a"), .integer(4))), completion: nil)
    engine.pump()
    #expect(try engine.view(at: path("a")).scalar == .integer(5))
    #expect(engine.head.lsn == LogSequenceNumber(3))
    #expect(mirror.root == engine.head.root)
    #expect(mirror.lsns == [3])
    log.answer(.refused("another one leads"))
    #expect(results(engine, [try set("lost", .integer(1))]).count == 1)
    #expect(engine.head.lsn == LogSequenceNumber(3))
    #expect(mirror.differenceCount == 0)
    #expect(mirror.root == engine.head.root)
    try engine.close()
  }

  @Test("what is shown and what is heard are the same at any time", arguments: Scale.seeds(20))
  func shownAndHeard(seed: UInt64) throws {
    let first = try leader(1, showsAtOnce: false)
    let second = try open(2, showsAtOnce: false)
    var generator = WriteGenerator(seed: seed)
    let mirrors = [CommitLog(.empty), CommitLog(.empty)]
    first.setObserver(mirrors[0])
    second.setObserver(mirrors[1])
    for _ in 0..<40 {
      for _ in 0..<generator.random.below(5) {
        first.submit(Draft(generator.write()), completion: { _ in })
      }
      let before = first.head.root
      #expect(mirrors[0].root == before, "seed \(seed)")
      if generator.random.oneIn(4) {
        log.answer(.refused("another one leads"))
        first.pump()
        #expect(first.head.root == before, "seed \(seed)")
        _ = first.beginLeading()
      } else {
        first.pump()
      }
      #expect(mirrors[0].root == first.head.root, "seed \(seed)")
      try log.feed(second)
      #expect(second.head.root == first.head.root, "seed \(seed)")
      #expect(mirrors[1].root == second.head.root, "seed \(seed)")
    }
    try first.close()
    try second.close()
  }

  /// Leaders come and go, batches are refused, engines are closed and opened again.
  @Test("all acknowledged writes are in every copy, whoever leads", arguments: Scale.seeds(40))
  func changingLeaders(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var engines = try (0..<3).map { try open($0) }
    var acknowledged: [LogSequenceNumber] = []
    var values = 0
    for _ in 0..<60 {
      let number = random.below(3)
      switch random.below(6) {
      case 0:
        try engines[number].close()
        engines[number] = try open(number)
      case 1:
        for engine in engines where engine.isLeading { try engine.endLeading("another one leads") }
        log.setLeader(number)
        try log.feed(engines[number])
        #expect(engines[number].beginLeading())
      case 2: if !engines[number].isLeading { try log.feed(engines[number], recordCount: 2) }
      case 3: log.answer(.refused("a refusal"))
      default:
        guard let leader = engines.first(where: \.isLeading) else { continue }
        let writes = try (0..<1 + random.below(4)).map { _ in
          values += 1
          return try set("k\(random.below(20))", .integer(Int64(values)))
        }
        for result in results(leader, writes) {
          if case .success(let lsn?) = result { acknowledged.append(lsn) }
        }
      }
    }
    for engine in engines where !engine.isLeading { try log.feed(engine) }
    let last = log.lastLSN
    #expect(acknowledged.max() ?? .zero == last, "seed \(seed)")
    #expect(acknowledged == acknowledged.sorted(), "seed \(seed)")
    for engine in engines {
      #expect(engine.head.lsn == last, "seed \(seed)")
      #expect(engine.head.root == engines[0].head.root, "seed \(seed)")
      try engine.close()
    }
  }
}
