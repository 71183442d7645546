import DendroTestSupport
import DendroTesting
import Foundation
import Synchronization
import Testing

@testable import DendroEngine
@testable import DendroStorage
@testable import DendroTree

@Suite("The second root")
struct SecondRootTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(
    _ mode: Engine.Mode = .readWrite, at place: String = "/db",
    _ change: (inout EngineOptions) -> Void = { _ in }
  ) throws -> Engine {
    var options = EngineOptions.inline
    change(&options)
    return try Engine.open(at: place, options: options, environment: disk.environment, mode: mode)
  }

  /// A write to the second root, with one to the data or alone.
  private func write(
    _ place: String, _ scalar: Scalar, with data: Draft? = nil, origin: WriteOrigin? = nil
  ) throws -> EncodedWrite {
    EncodedWrite(
      data.map { EncodedWrite($0) },
      system: EncodedWrite(.set(try path(place), Node(scalar))), origin: origin)
  }

  private func logged(_ engine: Engine) throws -> [LoggedWrite] {
    try engine.synchronize()
    return try engine.changes(since: .zero).page(upTo: engine.head.lsn)
  }

  private func formats(_ place: String = "/db") throws -> [Bool] {
    let directory = try DatabaseDirectory.open(
      place, environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    return try directory.contents().segments.map {
      try SegmentHeader.read($0, in: directory).format.hasSecondRoot
    }
  }

  // MARK: Writing and opening

  @Test(
    "a write to it alone has a number, changes no data, is shown to no observer, and is there again"
  )
  func alone() throws {
    var engine = try open()
    let commits = CommitLog(.empty)
    engine.setObserver(commits)
    engine.submit(try set("a", .integer(1)), completion: nil)
    let before = engine.head
    let received = Received<LogSequenceNumber?>()
    engine.submit(try write("kept/x", .bytes([1, 2, 3]))) { received.add(try? $0.get()) }
    engine.pump()
    let lsn = try #require(received.all.first ?? nil)
    #expect(lsn > before.lsn && engine.head.lsn == lsn)
    #expect(engine.head.root == before.root)
    #expect(commits.lsns == [1])
    #expect(engine.systemNode(at: try path("kept/x")).scalar == .bytes([1, 2, 3]))
    // The same value again changes nothing.
    engine.submit(try write("kept/x", .bytes([1, 2, 3]))) { received.add(try? $0.get()) }
    engine.pump()
    #expect(received.all.last == .some(nil))
    try engine.close()

    engine = try open()
    #expect(engine.head.lsn == lsn && engine.head.root == before.root)
    #expect(engine.systemNode(at: try path("kept/x")).scalar == .bytes([1, 2, 3]))
    #expect(try logged(engine).map(\.lsn.rawValue) == [1])
    try engine.close()
  }

  @Test("the last write before the end may be the first one to it", arguments: [false, true])
  func last(isRefused: Bool) throws {
    let refusals = Received<EngineError>()
    var engine = try open { $0.unreportedFailure = { error, _ in refusals.add(error) } }
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    if isRefused { disk.freeSpace = 0 }
    try? engine.close(writing: try write("x", .integer(1), with: try set("a", .integer(2))))
    #expect(refusals.all.count == (isRefused ? 1 : 0))
    disk.freeSpace = nil
    engine = try open()
    #expect(try engine.view(at: try path("a")).scalar == .integer(isRefused ? 1 : 2))
    #expect(engine.systemNode(at: try path("x")).scalar == (isRefused ? nil : .integer(1)))
    try engine.close()
  }

  /// The close's own turn calls what goes on with it. The writer whose turn comes next waits for that turn's end.
  @Test("a close that begins it does not wait for a block's write that waits for the disk")
  func closingBesideBlockWrites() async throws {
    let held = HeldDisk(disk)
    var options = EngineOptions()
    options.stallByteLimit = 1
    let engine = try Engine.open(at: "/db", options: options, environment: held.environment)
    let (isRolling, mayRoll) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let (isInBlock, mayWrite) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let results = Received<Bool>()
    held.onCreate { path in
      guard path.contains(".log") else { return }
      isRolling.signal()
      mayRoll.wait()
    }
    let (last, more) = (try write("x", .integer(1)), try set("b", .integer(1)))
    let (place, block) = (try path("a"), try set("c", .integer(1)))
    Thread.detachNewThread {
      engine.transact(at: place, refused: { _ in results.add(false) }) { _ in
        isInBlock.signal()
        mayWrite.wait()
        engine.submit(block) { results.add((try? $0.get()) != nil) }
        return TransactionDecision(nil) { _ in }
      }
    }
    await Task.detached { isInBlock.wait() }.value
    let closed = Received<Bool>()
    Thread.detachNewThread { closed.add((try? engine.close(writing: last)) != nil) }
    await Task.detached { isRolling.wait() }.value
    held.onCreate(nil)
    engine.submit(more) { results.add((try? $0.get()) != nil) }
    mayWrite.signal()
    while engine.heldThreadCount == 0 { await Task.yield() }
    mayRoll.signal()
    while closed.all.isEmpty || results.all.count < 2 { await Task.yield() }
    #expect(closed.all == [true])
    let again = try open()
    #expect(again.systemNode(at: try path("x")).scalar == .integer(1))
    try await again.close()
  }

  @Test("a write to both is one write, with who made it")
  func both() throws {
    let engine = try open()
    let commits = CommitLog(.empty)
    engine.setObserver(commits)
    let origin = WriteOrigin(client: Array("client".utf8), number: 7)
    engine.submit(
      try write("results/client", .integer(7), with: try set("a/b", .string("x")), origin: origin),
      completion: nil)
    engine.pump()
    #expect(try engine.view(at: try path("a/b")).scalar == .string("x"))
    #expect(engine.systemNode(at: try path("results/client")).scalar == .integer(7))
    #expect(commits.root == engine.head.root)
    let change = try #require(try logged(engine).first)
    #expect(change.lsn == engine.head.lsn)
    #expect(change.origin == origin)
    guard case .set(let place, let node)? = change.system else {
      Issue.record("the log has \(String(describing: change.system))")
      return
    }
    #expect(place == (try path("results/client")) && node.scalar == .integer(7))
    try engine.close()
  }

  @Test("server values of the data are computed, and those of a write that is kept stay")
  func serverValues() throws {
    let engine = try open()
    engine.submit(try set("n", .integer(5)), completion: nil)
    let increment = Draft(
      .set(try path("n"), Node(Draft.Deferred.standIn)),
      deferred: [Draft.Deferred(path: .root, value: .increment(.integer(2)))])
    let kept = Node(keeping: EncodedWrite(increment))
    engine.submit(
      EncodedWrite(
        EncodedWrite(increment), system: EncodedWrite(.set(try path("kept"), kept))),
      completion: nil)
    engine.pump()
    #expect(try engine.view(at: try path("n")).scalar == .integer(7))
    let again = try #require(engine.systemNode(at: try path("kept")).keptWrite)
    engine.submit(again, completion: nil)
    engine.pump()
    #expect(try engine.view(at: try path("n")).scalar == .integer(9))
    try engine.close()
  }

  @Test("a database in memory has one, too")
  func inMemory() throws {
    let engine = Engine.inMemory(options: .inline, environment: disk.environment)
    engine.submit(try write("a", .integer(1)), completion: nil)
    #expect(engine.systemNode(at: try path("a")).scalar == .integer(1))
    #expect(engine.head.root.isEmpty)
    try engine.close()
  }

  // MARK: Files

  @Test("the first write begins a segment that says so; no file of a database without one does")
  func segments() throws {
    var engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    try engine.checkpoint()
    #expect(try formats().allSatisfy { !$0 })
    engine.submit(try write("x", .integer(1)), completion: nil)
    engine.pump()
    #expect(try formats().last == true)
    #expect(try formats().dropLast().allSatisfy { !$0 })
    try engine.roll()
    #expect(try formats().suffix(2) == [true, true])
    try engine.close()
    // Also after the second root has become empty again.
    engine = try open()
    engine.submit(
      EncodedWrite(nil, system: EncodedWrite(.remove(try path("x")))), completion: nil)
    try engine.roll()
    #expect(try formats().last == true)
    try engine.close()
  }

  @Test("the first write to an empty database, and right behind a roll")
  func emptySegments() throws {
    for rolls in [false, true] {
      let place = "/db\(rolls)"
      let engine = try open(at: place)
      if rolls {
        engine.submit(try set("a", .integer(1)), completion: nil)
        try engine.roll()
      }
      engine.submit(try write("x", .integer(1)), completion: nil)
      engine.pump()
      #expect(try formats(place).last == true)
      #expect(try formats(place).count == (rolls ? 3 : 2))
      try engine.close()
      let again = try open(at: place)
      #expect(again.systemNode(at: try path("x")).scalar == .integer(1))
      try again.close()
    }
  }

  @Test(
    "a checkpoint has it, with many chunks of either tree",
    arguments: [EngineOptions.Loading.onDemand, .whole])
  func checkpoints(loading: EngineOptions.Loading) throws {
    func open() throws -> Engine {
      try self.open {
        $0.checkpointChunkByteLimit = 256
        $0.loading = loading
      }
    }
    var engine = try open()
    for number in 0..<200 {
      engine.submit(
        try write(
          "kept/k\(number)", .bytes(Array(repeating: UInt8(number), count: number)),
          with: number % 2 == 0 ? try set("data/k\(number)", .integer(Int64(number))) : nil),
        completion: nil)
    }
    engine.pump()
    try engine.checkpoint()
    let (root, system) = (engine.head.root, engine.systemNode(at: .root))
    engine.submit(
      try write("kept/k3", .integer(3), with: try set("data/k4", .integer(5))), completion: nil)
    let (laterRoot, laterSystem) = (engine.head.root, engine.systemNode(at: .root))
    try engine.close()
    engine = try open()
    #expect(engine.report.replayedWriteCount == 1)
    #expect(try engine.view(at: .root) == laterRoot)
    #expect(engine.systemNode(at: .root) == laterSystem)
    // With what was read of the last one.
    engine.submit(
      try write("kept/k3", .bytes([3, 3, 3]), with: try set("data/k4", .integer(4))),
      completion: nil)
    try engine.checkpoint()
    try engine.close()
    engine = try open()
    #expect(engine.report.replayedWriteCount == 0)
    #expect(try engine.view(at: .root) == root)
    #expect(engine.systemNode(at: .root) == system)
    try engine.close()
  }

  @Test("a checkpoint of no data and a second root, and the other way round")
  func emptyTrees() throws {
    var engine = try open()
    engine.submit(try write("x", .bytes([])), completion: nil)
    engine.pump()
    try engine.checkpoint()
    try engine.close()
    engine = try open()
    #expect(engine.head.root.isEmpty)
    #expect(engine.systemNode(at: try path("x")).scalar == .bytes([]))
    engine.submit(
      EncodedWrite(
        EncodedWrite(try set("a", .integer(1))), system: EncodedWrite(.remove(try path("x")))),
      completion: nil)
    try engine.checkpoint()
    try engine.close()
    engine = try open()
    #expect(try engine.view(at: try path("a")).scalar == .integer(1))
    #expect(engine.systemNode(at: .root).isEmpty)
    try engine.close()
  }

  @Test("backups, restored states and followers have it; the past has what it was then")
  func copies() throws {
    let engine = try open { $0.history = .all }
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.submit(try write("x", .integer(1)), completion: nil)
    engine.pump()
    let first = engine.head.lsn
    let follower = try open(.following)
    let commits = CommitLog(follower.head.root)
    follower.setObserver(commits)
    #expect(follower.systemNode(at: try path("x")).scalar == .integer(1))
    engine.submit(try write("x", .integer(2)), completion: nil)
    engine.submit(try write("y", .integer(3), with: try set("b", .integer(2))), completion: nil)
    try engine.synchronize()
    try follower.refresh()
    #expect(follower.systemNode(at: .root) == engine.systemNode(at: .root))
    #expect(follower.head.root == engine.head.root && follower.head.lsn == engine.head.lsn)
    #expect(commits.lsns == [engine.head.lsn.rawValue])
    let past = try #require(try engine.state(at: .lsn(first)))
    #expect(past.roots.system.child(try Key("x")).scalar == .integer(1))

    try engine.backup(to: "/backup")
    let backup = try open(at: "/backup")
    #expect(backup.systemNode(at: .root) == engine.systemNode(at: .root))
    #expect(backup.head.root == engine.head.root)
    backup.submit(try write("z", .integer(4)), completion: nil)
    backup.pump()
    #expect(backup.head.lsn == engine.head.lsn.next)
    try backup.close()
    _ = try engine.restore(.lsn(first), to: "/restored")
    let restored = try open(at: "/restored")
    #expect(restored.systemNode(at: .root) == past.roots.system)
    try restored.close()
    try follower.close()
    try engine.close()
  }

  @Test("what a damaged directory still has of it is saved")
  func salvage() throws {
    let engine = try open { $0.segmentByteLimit = 2_000 }
    for number in 0..<60 {
      engine.submit(
        try write("k\(number)", .integer(Int64(number)), with: try set("d\(number)", .integer(1))),
        completion: nil)
      engine.pump()
      if number == 20 { try engine.checkpoint() }
    }
    let (root, system) = (engine.head.root, engine.systemNode(at: .root))
    try engine.close()
    let directory = try DatabaseDirectory.open(
      "/db", environment: disk.environment, mode: .readOnly)
    defer { directory.close() }
    _ = try Salvage(directory).repair(to: "/saved")
    let saved = try open(at: "/saved")
    #expect(try saved.view(at: .root) == root)
    #expect(saved.systemNode(at: .root) == system)
    try saved.close()
  }

  // MARK: Refusals

  @Test("what the disk refuses is undone in both trees")
  func undone() throws {
    let engine = try open()
    engine.submit(
      try write("x", .integer(1), with: try set("a", .integer(1))), completion: nil)
    engine.pump()
    let (head, system) = (engine.head, engine.systemNode(at: .root))
    disk.inject(DiskFault(.error(28), at: 1, isPermanent: true))
    let received = Received<Bool>()
    for number in 2...4 {
      engine.submit(
        try write("x", .integer(Int64(number)), with: try set("a", .integer(Int64(number))))
      ) { received.add((try? $0.get()) == nil) }
    }
    engine.submit(try write("y", .integer(1))) { received.add((try? $0.get()) == nil) }
    engine.pump()
    #expect(received.all == [true, true, true, true])
    #expect(engine.head.root == head.root && engine.head.lsn == head.lsn)
    #expect(engine.systemNode(at: .root) == system)
    disk.removeFaults()
    try? engine.close()
    let again = try open()
    #expect(try again.view(at: .root) == head.root)
    #expect(again.systemNode(at: .root) == system)
    try again.close()
  }

  @Test("where no segment can begin, the first write is refused, and a later one is not")
  func firstRefused() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    disk.freeSpace = 0
    let received = Received<Bool>()
    engine.submit(try write("x", .integer(1))) { received.add((try? $0.get()) != nil) }
    engine.pump()
    #expect(received.all == [false])
    #expect(engine.systemNode(at: .root).isEmpty)
    // No segment says that it may have such writes.
    #expect(try formats().allSatisfy { !$0 })
    disk.freeSpace = nil
    engine.pump()
    engine.submit(try write("x", .integer(1))) { received.add((try? $0.get()) != nil) }
    engine.pump()
    #expect(received.all == [false, true])
    #expect(try formats() == [false, true])
    engine.submit(try write("x", .integer(2))) { received.add((try? $0.get()) != nil) }
    engine.pump()
    #expect(received.all.last == true)
    #expect(engine.systemNode(at: try path("x")).scalar == .integer(2))
    try engine.close()
    let again = try open()
    #expect(again.systemNode(at: try path("x")).scalar == .integer(2))
    try again.close()
  }

  @Test("the limit of memory is one for both trees")
  func memoryLimit() throws {
    let engine = Engine.inMemory(
      options: {
        var options = EngineOptions.inline
        options.memoryByteLimit = 1 << 20
        return options
      }(), environment: disk.environment)
    let refused = Received<Bool>()
    for number in 0..<100 {
      engine.submit(try write("k\(number)", .bytes(Array(repeating: 1, count: 64 << 10)))) {
        if case .failure(.memoryLimit) = $0 { refused.add(true) }
      }
      engine.pump()
    }
    #expect(refused.all.count > 70)
    // What removes is admitted, and makes room again.
    engine.submit(EncodedWrite(nil, system: EncodedWrite(.remove(.root))), completion: nil)
    let received = Received<Bool>()
    engine.submit(try write("again", .integer(1))) { received.add((try? $0.get()) != nil) }
    engine.pump()
    #expect(received.all == [true])
    try engine.close()
  }

  // MARK: Threads

  @Test("many threads make the first write at once, and one of them from a completion")
  func threads() async throws {
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    let results = Received<Bool>()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<16 {
        group.addTask {
          guard let write = try? self.write("k\(number)", .integer(Int64(number))) else { return }
          let result = try? await engine.write(write)
          results.add(result != nil)
        }
      }
      group.addTask {
        await withCheckedContinuation { (task: CheckedContinuation<Void, Never>) in
          guard let first = try? set("a", .integer(1)),
            let second = try? self.write("z", .integer(1))
          else { return task.resume() }
          engine.submit(first) { _ in
            engine.submit(second) { result in
              results.add((try? result.get()) != nil)
              task.resume()
            }
          }
        }
      }
    }
    #expect(results.all == Array(repeating: true, count: 17))
    #expect(engine.systemNode(at: .root).childCount == 17)
    #expect(try formats().filter { $0 }.count == 1)
    try await engine.close()
    let again = try open()
    #expect(again.systemNode(at: .root).childCount == 17)
    try await again.close()
  }
}
