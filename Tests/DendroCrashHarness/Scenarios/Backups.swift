import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization

/// What a backup holds, and what is left of one that failed.
package enum Backups {
  package static let scenarios = [
    Scenario("what a backup holds", backup),
    Scenario("a backup where a database is", backupPlace),
    Scenario("a backup that fails", backupFails),
    Scenario("a backup that fails beside a file of others", backupBesideOthers),
    Scenario("a backup that fails beside another opener", backupBesideOpener),
  ]

  @Sendable private static func backup() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    engine.submit(Draft(.set(Path("a"), Node(.integer(2)))), completion: nil)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    do throws(EngineError) {
      try engine.backup(to: "/copy")
    } catch {
      return
    }
    engine.pump()
    let copy = try Engine.open(
      at: "/copy", options: EngineRecording.options(), environment: disk.environment)
    try require(copy.head.root == engine.head.root, "a write that was taken back")
  }

  @Sendable private static func backupPlace() throws {
    let disk = SimulatedDisk(seed: 1)
    let options = EngineRecording.options()
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    let other = try Engine.open(at: "/copy", options: options, environment: disk.environment)
    try other.put("a", .integer(2))
    try other.close()
    try requireError("was written over it") { () throws(EngineError) in
      try engine.backup(to: "/copy")
    }
    let again = try Engine.open(at: "/copy", options: options, environment: disk.environment)
    try require(again.integer(at: "a") == 2, "another tree")
  }

  @Sendable private static func backupFails() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    for number in 1...3 {
      disk.inject(DiskFault(.error(EIO), of: [.synchronize], at: number, pathPart: "/copy/"))
      do throws(EngineError) {
        try engine.backup(to: "/copy")
      } catch {
        try require(!disk.exists("/copy"), "left \(disk.names(in: "/copy"))")
        disk.removeFaults()
        continue
      }
      return try require(number > 1, "nothing failed")
    }
  }

  @Sendable private static func backupBesideOthers() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    try disk.createDirectory("/copy")
    try disk.make("/copy/notes", [7])
    disk.inject(DiskFault(.error(EIO), of: [.synchronize], at: 1, pathPart: "/copy/"))
    try requireError("nothing failed") { () throws(EngineError) in try engine.backup(to: "/copy") }
    try require(disk.names(in: "/copy") == ["notes"], "left \(disk.names(in: "/copy"))")
  }

  /// What it has made is removed under its lock: otherwise another opener's files might be.
  @Sendable private static func backupBesideOpener() throws {
    let disk = InterposedDisk(SimulatedDisk(seed: 1))
    let engine = try disk.open()
    try engine.put("a", .integer(1))
    let found = Mutex<Bool?>(nil)
    disk.interpose(before: .remove, on: "/copy/dendro.lock") {
      let lock = try? disk.disk.open("/copy/dendro.lock", .readWrite)
      found.withLock { $0 = (try? lock?.lock(.exclusive)) ?? true }
      lock?.unlock()
    }
    disk.disk.inject(
      DiskFault(.error(EIO), of: [.synchronize], at: 1, pathPart: "/copy/"))
    try requireError("nothing failed") { () throws(EngineError) in try engine.backup(to: "/copy") }
    try require(
      found.withLock { $0 } == false, "the directory was free: \(found.withLock { $0 } as Any)")
  }
}
