import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

@Suite("Backups that are cut short")
struct BackupTests {
  private static func open(_ disk: SimulatedDisk, _ path: String, _ mode: Engine.Mode = .readWrite)
    throws -> Engine
  {
    try Engine.open(at: path, options: .inline, environment: disk.environment, mode: mode)
  }

  private static func source(_ disk: SimulatedDisk) throws -> Engine {
    let engine = try open(disk, "/db")
    for number in 0..<5 {
      engine.submit(try set("n\(number)", .integer(Int64(number))), completion: nil)
    }
    engine.pump()
    return engine
  }

  @Test(
    "wherever it is killed: no database begins there, and the next backup replaces it",
    arguments: [false, true])
  func killed(parity: Bool) throws {
    var refusedCount = 0
    var callCount = 0
    var isComplete = false
    while !isComplete {
      let disk = SimulatedDisk(seed: 1)
      let engine = try Self.source(disk)
      let tree = engine.head.root
      disk.disconnect(after: callCount)
      do throws(EngineError) {
        try engine.backup(to: "/copy", parity: parity)
        isComplete = true
      } catch {}
      let left = disk.copy()
      for mode in [Engine.Mode.readWrite, .readWriteExisting, .readOnly] {
        let judged = left.copy()
        do {
          let found = try Self.open(judged, "/copy", mode)
          // Nothing was made there yet, or all of it.
          let isNew = found.report.created && !left.exists("/copy/backup.unfinished")
          #expect(isNew || found.head.root == tree, "after \(callCount) calls, \(mode)")
          if isNew { #expect(left.names(in: "/copy").isEmpty, "after \(callCount) calls") }
          try found.close()
        } catch {
          guard case .storage(let refusal) = error as? EngineError else { throw error }
          switch refusal {
          case .unfinishedBackup: refusedCount += 1
          case .notFound: #expect(mode != .readWrite)
          default: Issue.record("after \(callCount) calls, \(mode): \(refusal)")
          }
          #expect(judged.names(in: "/copy") == left.names(in: "/copy"))
        }
      }
      if !isComplete {
        let again = try Self.open(left, "/db")
        // Only its last synchronize may have been missing.
        let isThere =
          left.names(in: "/copy").contains { $0.hasSuffix(".log") }
          && !left.exists("/copy/backup.unfinished")
        if !isThere { try again.backup(to: "/copy", parity: parity) }
        if parity { try ParityTests.expectParity(left, "/copy", "after \(callCount) calls") }
        let copy = try Self.open(left, "/copy")
        #expect(copy.head.root == tree && !copy.report.created, "after \(callCount) calls")
        #expect(!left.exists("/copy/backup.unfinished"))
        try copy.close()
        try again.close()
      }
      callCount += 1
    }
    #expect(refusedCount > 10)
  }

  @Test("a power loss leaves no database there either, or all of it", arguments: [false, true])
  func powerLoss(parity: Bool) throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Self.source(disk)
    let tree = engine.head.root
    let start = disk.crashPoints().count
    try engine.backup(to: "/copy", parity: parity)
    for point in disk.crashPoints().dropFirst(start) {
      point.forEachState { state in
        let crashed = point.disk(state)
        let before = crashed.names(in: "/copy")
        do {
          let found = try Self.open(crashed, "/copy")
          #expect(
            found.head.root == tree
              || before.allSatisfy { $0 == "dendro.lock" || $0 == "readers.lock" }, "\(before)")
          if parity, found.head.root == tree {
            #expect(before.count { $0.hasSuffix(".parity") } == 2, "\(before)")
          }
          try found.close()
        } catch {
          guard case .storage(.unfinishedBackup) = error as? EngineError else {
            Issue.record("\(error), \(before)")
            return
          }
        }
      }
    }
  }

  @Test("where a database is, or one was begun meanwhile, nothing is changed")
  func overDatabase() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Self.source(disk)
    try Self.open(disk, "/copy").close()
    let names = disk.names(in: "/copy")
    #expect(throws: EngineError.self) { try engine.backup(to: "/copy") }
    #expect(disk.names(in: "/copy") == names)
    try Self.open(disk, "/copy").close()
  }

  // MARK: Removing what a failed attempt has made

  /// Whether another opener would get the lock of the directory. True without a lock file, which it would make.
  private static func isFree(_ disk: SimulatedDisk, _ directory: String) -> Bool {
    guard let file = try? disk.open(directory + "/dendro.lock", .readWrite) else { return true }
    defer { file.unlock() }
    return (try? file.lock(.exclusive)) ?? true
  }

  /// Has a copy of `/db` fail at each of its writes, and looks at each removal whether another opener could have begun
  /// a database there.
  private static func expectLockedRemovals(
    _ make: (HeldDisk, Engine) throws -> Void, removesAtLeast countMin: Int
  ) throws {
    var number = 1
    var isComplete = false
    var removedCount = 0
    while !isComplete {
      let held = HeldDisk()
      let engine = try Engine.open(at: "/db", options: .inline, environment: held.environment)
      for number in 0..<5 {
        engine.submit(try set("n\(number)", .integer(Int64(number))), completion: nil)
      }
      engine.pump()
      try engine.checkpoint()
      let unlocked = Received<String>()
      let removed = Received<String>()
      held.onRemove { path in
        guard path.hasPrefix("/copy/"), held.disk.exists(path) else { return }
        removed.add(path)
        if isFree(held.disk, "/copy") { unlocked.add(path) }
      }
      held.disk.inject(
        DiskFault(
          .error(SystemError.noSpace.code), of: [.write, .create, .synchronize], at: number,
          isPermanent: true, pathPart: "/copy/0"))
      do {
        try make(held, engine)
        isComplete = true
      } catch {
        #expect(!held.disk.exists("/copy"), "call \(number)")
        #expect(removed.all.last == "/copy/dendro.lock", "call \(number): \(removed.all)")
      }
      #expect(unlocked.all.isEmpty, "call \(number)")
      removedCount = max(removedCount, removed.all.count)
      held.onRemove(nil)
      held.disk.removeFaults()
      try engine.close()
      number += 1
    }
    #expect(number > 4 && removedCount >= countMin)
  }

  @Test("what a failed backup has made is removed before another opener can take the directory")
  func removedUnderLock() throws {
    try Self.expectLockedRemovals(
      { _, engine in try engine.backup(to: "/copy") }, removesAtLeast: 4)
  }

  @Test("what a failed repair has made is removed before another opener can take the directory")
  func repairRemovedUnderLock() throws {
    try Self.expectLockedRemovals(
      { held, _ in
        let source = try DatabaseDirectory.open(
          "/db", environment: held.environment, mode: .readOnly)
        defer { source.close() }
        _ = try Salvage(source).repair(to: "/copy")
      }, removesAtLeast: 4)
  }
}
