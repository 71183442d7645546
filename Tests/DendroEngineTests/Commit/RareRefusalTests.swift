import DendroPlatform
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import Testing

@testable import DendroEngine

/// Refusals that hardly ever come, and moments that hardly ever meet.
@Suite("Rare refusals of an engine")
struct RareRefusalTests {
  let disk = SimulatedDisk(seed: 1)

  func open(
    _ options: EngineOptions = .inline, _ mode: Engine.Mode = .readWrite
  ) throws -> Engine {
    try Engine.open(at: "/db", options: options, environment: disk.environment, mode: mode)
  }

  func isPoisoned(_ engine: Engine) throws -> Bool {
    let received = Received<EngineError>()
    engine.submit(try set("refused", .bool(true))) {
      if case .failure(let error) = $0 { received.add(error) }
    }
    engine.pump()
    guard case .poisoned = received.all.first else { return false }
    return true
  }

  var hasFailed: Bool { disk.trace.contains { $0.errno != 0 && $0.errno != ENOENT } }

  // MARK: While nothing is written

  @Test("a synchronize that is due while nothing is written fails: poisoned")
  func lateSynchronize() throws {
    var options = EngineOptions.inline
    options.durability = .interval(.milliseconds(50))
    let engine = try open(options)
    let received = Received<LogSequenceNumber?>()
    engine.submit(try set("a", .integer(1))) {
      if case .success(let lsn) = $0 { received.add(lsn) }
    }
    engine.pump()
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    // Due at some time from now on; on a slow machine it was due with the write, and that is refused.
    let acknowledged = received.all.count
    while acknowledged == 1, !hasFailed { engine.pump() }
    if acknowledged == 1 { #expect(try isPoisoned(engine)) }
    #expect(throws: (any Error).self, performing: { try engine.close() })
  }

  @Test("an idle record that fails, and not for want of room: poisoned")
  func idleRecord() async throws {
    let engine = try open(EngineOptions())
    // The first is the write's own.
    disk.inject(.failure(of: .write, at: 2, with: EIO))
    try await engine.write(set("a", .integer(1)))
    while !hasFailed { await Task.yield() }
    await #expect(throws: EngineError.self) { try await engine.write(set("b", .integer(2))) }
    #expect(disk.trace.count { $0.errno == EIO } == 1, "the idle record, and nothing after it")
    #expect(try engine.view(at: path("a")).scalar == .integer(1))
    await #expect(throws: EngineError.self) { try await engine.close() }
  }

  @Test("more than the backlog may hold makes writers wait, not fail")
  func backlog() async throws {
    var options = EngineOptions()
    options.stallByteLimit = 1
    let engine = try open(options)
    try await withThrowingTaskGroup { group in
      for number in 0..<50 {
        group.addTask {
          try await engine.write(set("k\(number)", .string(incompressible(200))))
        }
      }
      try await group.waitForAll()
    }
    #expect(engine.head.lsn == LogSequenceNumber(50))
    try await engine.close()
  }

  @Test("waiting for a durable write ends when the task is cancelled")
  func cancelledWait() async {
    let signal = DurableSignal()
    let waiting = Task { await signal.wait(behind: LogSequenceNumber(5), durable: { .zero }) }
    while !signal.hasWaiters { await Task.yield() }
    signal.advance(to: LogSequenceNumber(5))
    #expect(signal.hasWaiters)
    waiting.cancel()
    #expect(await waiting.value == false)
    #expect(!signal.hasWaiters)
  }

  // MARK: Unreported failures

  @Test("a reader's write without a completion is reported as an unreported failure")
  func unreported() throws {
    try open().close()
    let received = Received<EngineError>()
    var options = EngineOptions.inline
    options.unreportedFailure = { error, _ in received.add(error) }
    let reader = try open(options, .readOnly)
    reader.submit(try set("a", .integer(1)), completion: nil)
    #expect(received.all == [.readOnly])
    try reader.close()
  }

  @Test("a directory that can no longer be listed refuses reads of history, and nothing else")
  func unlistable() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    try engine.checkpoint()
    let reader = try open(.inline, .readOnly)
    disk.inject(.failure(of: .list, at: 1, with: EIO, isPermanent: true))
    #expect(throws: EngineError.self) { try engine.historyRange() }
    #expect(throws: EngineError.self) { try reader.refresh() }
    #expect(throws: EngineError.self) { try engine.state(at: .lsn(LogSequenceNumber(9))) }
    #expect(try reader.view(at: path("a")).scalar == .integer(1))
    disk.removeFaults()
    #expect(try reader.refresh() == LogSequenceNumber(1))
    try reader.close()
    try engine.close()
  }

  @Test("no path at all is refused, wherever a path is asked for")
  func emptyPath() throws {
    #expect(throws: EngineError.self) { try Engine.open(at: "", environment: disk.environment) }
    let engine = try open()
    #expect(throws: EngineError.self) { try engine.backup(to: "a\0b") }
    try engine.close()
  }

  @Test("a backup whose place cannot be looked at, or not be cleared, says why")
  func backupPlace() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    disk.inject(DiskFault(.error(EIO), of: [.identity], at: 1, pathPart: "copy"))
    let blind = #expect(throws: EngineError.self) { try engine.backup(to: "/copy") }
    guard case .storage(.io(_, "/copy", _, .inputOutput)) = blind else {
      Issue.record("\(blind as Any)")
      return
    }
    #expect(!disk.exists("/copy"))
    // The first error is the one that counts, whatever becomes of what was made. The first file that is
    // removed is what an earlier attempt may have left.
    disk.inject(DiskFault(.error(ENOSPC), of: [.write], at: 2, isPermanent: true, pathPart: "copy"))
    disk.inject(
      DiskFault(.error(EACCES), of: [.remove], at: 2, isPermanent: true, pathPart: "copy"))
    let full = #expect(throws: EngineError.self) { try engine.backup(to: "/copy") }
    guard case .storage(let refusal) = full, refusal.isOutOfSpace else {
      Issue.record("\(full as Any)")
      return
    }
    #expect(disk.exists("/copy"))
    disk.removeFaults()
    try engine.backup(to: "/other")
    try engine.close()
  }

  @Test("a large tree is backed up, and a recovery of much log reports its progress")
  func large() throws {
    let engine = try open()
    for number in 0..<4 {
      engine.submit(try set("k\(number)", .string(incompressible(700_000))), completion: nil)
      engine.pump()
    }
    try engine.backup(to: "/copy")
    let root = engine.head.root
    try engine.close()
    let steps = Received<RecoveryProgress>()
    let again = try Engine.open(
      at: "/db", options: .inline, environment: disk.environment, progress: { steps.add($0) })
    let log = steps.all.filter { $0.phase == .log }
    #expect(log.count >= 2)
    #expect(log.allSatisfy { $0.completedByteCount <= $0.totalByteCount })
    #expect(again.head.root == root)
    try again.close()
    let copy = try Engine.open(at: "/copy", options: .inline, environment: disk.environment)
    #expect(copy.head.root == root)
    try copy.close()
  }

  @Test("a tree that is as large as it may be takes updates that only remove, and no others")
  func memory() throws {
    var options = EngineOptions.inline
    options.memoryByteLimit = 20_000
    let engine = try open(options)
    var number = 0
    func submit(_ draft: Draft) -> EngineError? {
      let received = Received<EngineError>()
      engine.submit(draft) { if case .failure(let error) = $0 { received.add(error) } }
      engine.pump()
      return received.all.first
    }
    while submit(try set("k\(number)", .string(incompressible(500)))) == nil { number += 1 }
    func update(_ actions: [Write.Entry.Action]) throws -> Draft {
      Draft(
        .update(
          .root,
          try actions.enumerated().map { .init(path: try path("k\($0)"), action: $1) }))
    }
    guard case .memoryLimit = submit(try update([.remove, .set(Node(.bool(true)))])) else {
      Issue.record("an update that adds was taken")
      return
    }
    guard case .memoryLimit = submit(try update([.remove, .increment(.integer(1))])) else {
      Issue.record("an increment was taken")
      return
    }
    #expect(submit(try update([.remove, .set(.empty)])) == nil)
    try engine.close()
  }

  // MARK: The past

  @Test("a log that is shorter than its durable part is reported as damage")
  func shortened() async throws {
    let engine = try open()
    for number in 0..<Int64(3) {
      engine.submit(try set("a", .integer(number)), completion: nil)
      engine.pump()
    }
    let name = try #require(disk.names(in: "/db").first { $0.hasSuffix(".log") })
    disk.resize("/db/" + name, to: 64)
    let changes = try engine.changes(since: .zero)
    let followed = await #expect(throws: EngineError.self) { try await changes.next() }
    guard followed?.isDamage == true else {
      Issue.record("\(followed as Any)")
      return
    }
    #expect(throws: EngineError.self) { try engine.state(at: .lsn(LogSequenceNumber(1))) }
  }

  @Test("a segment that is removed while the past is read: reported, not skipped")
  func removedMeanwhile() throws {
    var options = EngineOptions.inline
    options.history = .all
    let engine = try open(options)
    for number in 0..<Int64(6) {
      engine.submit(try set("a", .integer(number)), completion: nil)
      engine.pump()
      if number == 2 { try engine.roll() }
    }
    let disk = disk
    var isRemoved = false
    var callCount = 0
    #expect(throws: EngineError.self) {
      try engine.state(
        at: .lsn(LogSequenceNumber(5)),
        isCancelled: {
          callCount += 1
          // The first question comes before anything is read, the second before the first record.
          if callCount == 2 { isRemoved = disk.erase("/db/00000000000000000001.log") }
          return false
        })
    }
    #expect(isRemoved)
  }
}
