import DendroStorage
import DendroTesting
import DendroTree
import Synchronization
import Testing

@testable import DendroEngine

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Refusals that hardly ever come, and moments that hardly ever meet.
@Suite("Rare refusals of an engine")
struct RareRefusalTests {
  private let disk = SimulatedDisk(seed: 1)

  private func open(
    _ options: EngineOptions = .inline, _ mode: Engine.Mode = .readWrite
  ) throws -> Engine {
    try Engine.open(at: "/db", options: options, environment: disk.environment, mode: mode)
  }

  private func isPoisoned(_ engine: Engine) throws -> Bool {
    let told = Told<EngineError>()
    engine.submit(try set("refused", .bool(true))) {
      if case .failure(let error) = $0 { told.add(error) }
    }
    engine.pump()
    guard case .poisoned = told.all.first else { return false }
    return true
  }

  private var hasFailed: Bool { disk.trace.contains { $0.errno != 0 && $0.errno != ENOENT } }

  // MARK: While nothing is written

  @Test("a synchronize that is due while nothing is written fails: poisoned")
  func lateSynchronize() throws {
    var options = EngineOptions.inline
    options.durability = .interval(.milliseconds(50))
    let engine = try open(options)
    let told = Told<LogSequenceNumber?>()
    engine.submit(try set("a", .integer(1))) { if case .success(let lsn) = $0 { told.add(lsn) } }
    engine.pump()
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    // Due at some time from now on; on a slow machine it was due with the write, and that is refused.
    let acknowledged = told.all.count
    while acknowledged == 1, !hasFailed { engine.pump() }
    if acknowledged == 1 { #expect(try isPoisoned(engine)) }
    #expect(throws: (any Error).self, performing: { try engine.close() })
  }

  @Test("a mark that fails, and not for want of room: poisoned")
  func mark() async throws {
    let engine = try open(EngineOptions())
    // The first is the write's own.
    disk.inject(.failure(of: .write, at: 2, with: EIO))
    try await engine.write(set("a", .integer(1)))
    while !hasFailed { await Task.yield() }
    await #expect(throws: EngineError.self) { try await engine.write(set("b", .integer(2))) }
    #expect(disk.trace.count { $0.errno == EIO } == 1, "the mark, and nothing after it")
    #expect(engine.view(at: try path("a")).scalar == .integer(1))
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

  @Test("whoever waits for a durable write stops when cancelled")
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

  // MARK: Nobody to tell

  @Test("a reader's write without a completion goes to whoever is told of such")
  func unreported() throws {
    try open().close()
    let told = Told<EngineError>()
    var options = EngineOptions.inline
    options.unreportedFailure = { error, _ in told.add(error) }
    let reader = try open(options, .readOnly)
    reader.submit(try set("a", .integer(1)), completion: nil)
    #expect(told.all == [.readOnly])
    try reader.close()
  }

  @Test("a directory that cannot be listed any more refuses those who ask, and nobody else")
  func unlistable() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    try engine.checkpoint()
    let reader = try open(.inline, .readOnly)
    disk.inject(.failure(of: .list, at: 1, with: EIO, isPermanent: true))
    #expect(throws: EngineError.self) { try engine.historyRange() }
    #expect(throws: EngineError.self) { try reader.refresh() }
    #expect(throws: EngineError.self) { try engine.state(at: .lsn(LogSequenceNumber(9))) }
    #expect(reader.view(at: try path("a")).scalar == .integer(1))
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

  @Test("a large tree is backed up, and a recovery of much log tells how far it has come")
  func large() throws {
    let engine = try open()
    for number in 0..<4 {
      engine.submit(try set("k\(number)", .string(incompressible(700_000))), completion: nil)
      engine.pump()
    }
    try engine.backup(to: "/copy")
    let root = engine.head.root
    try engine.close()
    let steps = Told<RecoveryProgress>()
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
      let told = Told<EngineError>()
      engine.submit(draft) { if case .failure(let error) = $0 { told.add(error) } }
      engine.pump()
      return told.all.first
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

  @Test("a log that has become shorter than it was durable is told as damage")
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
    guard case .storage(.corrupt) = followed else {
      Issue.record("\(followed as Any)")
      return
    }
    #expect(throws: EngineError.self) { try engine.state(at: .lsn(LogSequenceNumber(1))) }
  }

  @Test("a segment that goes while the past is read: told, not skipped")
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

  // MARK: Closing in the midst of it

  /// Closes the engine from another thread, and returns once it begins no checkpoint any more.
  private static func closeAndWait(_ engine: Engine) {
    Task.detached { try? await engine.close() }
    // Whoever asks for a checkpoint before that is answered at the end.
    let refused = Told<Bool>()
    while refused.all.isEmpty {
      Task.detached {
        do {
          try await engine.checkpoint()
        } catch EngineError.closed {
          refused.add(true)
        } catch {}
      }
      usleep(1000)
    }
  }

  private final class Holder: Sendable {
    let engine = Mutex<Engine?>(nil)
  }

  /// Runs something before each number is drawn.
  private final class WatchedRandomness: Randomness {
    private let randomness: SeededRandomness
    private let body: @Sendable () -> Void

    init(_ randomness: SeededRandomness, _ body: @escaping @Sendable () -> Void) {
      self.randomness = randomness
      self.body = body
    }

    func next() -> UInt64 {
      body()
      return randomness.next()
    }
  }

  @Test("closed while a checkpoint is written: both end, and nothing is lost")
  func closedMeanwhile() async throws {
    let disk = SimulatedDisk(seed: 1)
    let holder = Holder()
    // The second number from then on is the checkpoint's; the first one is that of the segment before
    // which it stands.
    let isDue = Atomic<Int>(-1)
    let randomness = WatchedRandomness(disk.randomness) {
      guard isDue.wrappingSubtract(1, ordering: .relaxed).newValue == 0,
        let engine = holder.engine.withLock({ $0 })
      else { return }
      Self.closeAndWait(engine)
    }
    var options = EngineOptions()
    options.checkpointFactor = 0
    let engine = try Engine.open(
      at: "/db", options: options,
      environment: Environment(fileSystem: disk, clock: disk.clock, randomness: randomness))
    holder.engine.withLock { $0 = engine }
    for number in 0..<3 {
      try await engine.write(set("k\(number)", .string(incompressible(300_000))))
    }
    let root = engine.head.root
    isDue.store(2, ordering: .relaxed)
    await #expect(throws: EngineError.closed) { try await engine.checkpoint() }
    holder.engine.withLock { $0 = nil }
    let again = try await Self.reopened(disk)
    #expect(again.head.root == root)
    try await again.close()
  }

  /// Once the one who closes has come to the end.
  private static func reopened(_ disk: SimulatedDisk) async throws -> Engine {
    while true {
      do throws(EngineError) {
        return try Engine.open(at: "/db", options: .inline, environment: disk.environment)
      } catch {
        guard case .storage(.locked) = error else { throw error }
        await Task.yield()
      }
    }
  }

  // The purge                              the one who closes
  // writes its checkpoint
  // removes what no opening needs: waits
  //                                        is closing
  // goes on: reads the checkpoint back?
  @Test(
    "closed between the checkpoint of a purge and its removals: the past stays, and nothing is lost"
  )
  func closedBeforePurge() async throws {
    let held = HeldDisk()
    var options = EngineOptions()
    options.checkpointFactor = 0
    let engine = try Engine.open(at: "/db", options: options, environment: held.environment)
    for number in 0..<3 {
      if number > 0 { try await engine.checkpoint() }
      try await engine.write(set("k\(number)", .integer(1)))
    }
    let root = engine.head.root
    // The third checkpoint lets the first one and the log before the second one go.
    held.hold(.removeSegment)
    let purge = Task { () -> EngineError? in
      do throws(EngineError) {
        try await engine.purgeHistory()
        return nil
      } catch {
        return error
      }
    }
    await onThread { held.waitForCall() }
    await onThread { Self.closeAndWait(engine) }
    held.release()
    #expect(await purge.value == .closed)

    let again = try await Self.reopened(held.disk)
    #expect(again.head.root == root)
    #expect(again.statistics().checkpointLSN == LogSequenceNumber(3))
    let names = held.disk.names(in: "/db")
    #expect(names.count { $0.hasSuffix(".checkpoint") } == 2, "a purge leaves one: \(names)")
    // What the first one had begun another one ends.
    try await again.purgeHistory()
    #expect(held.disk.names(in: "/db").count { $0.hasSuffix(".checkpoint") } == 1)
    #expect(again.head.root == root)
    try await again.close()
  }

  @Test("a purge takes the files of what recoveries cut, too")
  func purgedTornFiles() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    let point = disk.crashPoint()
    let crashed = point.disk(point.allKept)
    let name = try #require(crashed.names(in: "/db").first { $0.hasSuffix(".log") })
    let end = try #require(crashed.contents(of: "/db/" + name)?.lastIndex { $0 != 0 })
    crashed.overwrite("/db/" + name, at: end + 1, with: [1, 2, 3])
    let again = try Engine.open(at: "/db", options: .inline, environment: crashed.environment)
    #expect(again.report.tornFile != nil)
    func torn() -> Int { crashed.names(in: "/db").count { $0.contains("torn") } }
    #expect(torn() == 1)
    again.submit(try set("a", .integer(2)), completion: nil)
    try again.purgeHistory()
    #expect(torn() == 0)
    try again.close()
  }

  // MARK: Processes

  #if canImport(Glibc)
    /// As long as `body` runs, every new thread would get a stack that is larger than the address space,
    /// unless its maker asks for another one: there is none, not even an old one to use again.
    ///
    /// A limit on memory or on the number of threads would not do: the stacks of threads that have ended
    /// are kept for the next ones, and root has no such number.
    private static func withoutThreads(_ body: () -> Void) {
      typealias Call = @convention(c) (UnsafeMutablePointer<pthread_attr_t>) -> CInt
      // GNU's own, which is why they are not imported.
      let (get, set) = (
        unsafeBitCast(dlsym(nil, "pthread_getattr_default_np"), to: Call?.self),
        unsafeBitCast(dlsym(nil, "pthread_setattr_default_np"), to: Call?.self)
      )
      var usual = pthread_attr_t()
      var unusual = pthread_attr_t()
      guard let get, let set, get(&usual) == 0, pthread_attr_init(&unusual) == 0,
        pthread_attr_setstacksize(&unusual, 1 << 47) == 0, set(&unusual) == 0
      else {
        Issue.record("the system takes no such attributes")
        return
      }
      body()
      #expect(set(&usual) == 0)
    }

    @Test("where the system has no thread an engine is refused, and a checkpoint is, until it has")
    func noThread() async {
      await #expect(processExitsWith: .success) {
        let disk = SimulatedDisk(seed: 1)
        let engine = try Engine.open(at: "/db", environment: disk.environment)
        try await engine.write(set("a", .integer(1)))
        var opening: EngineError?
        var checkpoint: EngineError?
        var memory: Engine?
        // No closure is told here: its queue needs a thread too, and Dispatch waits until it gets one.
        Self.withoutThreads {
          do throws(EngineError) {
            _ = try Engine.open(at: "/other", environment: disk.environment)
          } catch {
            opening = error
          }
          do throws(EngineError) { try engine.checkpoint() } catch { checkpoint = error }
          memory = Engine.inMemory(environment: disk.environment)
        }
        for (error, place) in [(opening, "/other"), (checkpoint, "/db")] {
          guard case .storage(.io("start a thread", place, _, let cause)) = error else {
            Issue.record("\(place): \(error as Any)")
            continue
          }
          #expect(cause.code == EAGAIN)
        }
        await #expect(throws: EngineError.closed) {
          try await memory?.write(set("a", .integer(1)))
        }
        try await memory?.close()
        // Now there is one, for each of them.
        try await engine.checkpoint()
        #expect(engine.statistics().checkpointCount == 1)
        try await Engine.open(at: "/other", environment: disk.environment).close()
        try await engine.close()
      }
    }

    @Test("in a working directory that has gone no relative path is one")
    func goneDirectory() async {
      await #expect(processExitsWith: .success) {
        var template = Array("/tmp/dendro-gone-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) }
        guard let made, chdir(made) == 0, rmdir(made) == 0 else { exit(1) }
        let error = #expect(throws: EngineError.self) { try Engine.open(at: "db") }
        guard case .storage(.io("getcwd", "db", _, .noSuchFile)) = error else { exit(2) }
      }
    }
  #endif
}
