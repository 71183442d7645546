import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation

/// What a backup holds, and what is left of one that failed.
package enum Backups {
  package static let sweep = Sweep.cases(
    "backups",
    [
      Case("what a backup holds", backup),
      Case("a backup where a database is", backupPlace),
      Case("a backup that fails", backupFails),
      Case("a backup that fails beside a file of others", backupBesideOthers),
    ])

  @Sendable private static func backup() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    engine.submit(Draft(.set(Path("a"), Node(.integer(2)))), completion: nil)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    do throws(EngineError) {
      try engine.backup(to: "/copy")
    } catch {
      return nil
    }
    engine.pump()
    let copy = try Engine.open(
      at: "/copy", options: EngineRecording.options(), environment: disk.environment)
    return copy.head.root == engine.head.root ? nil : "a write that was taken back"
  }

  @Sendable private static func backupPlace() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let options = EngineRecording.options()
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    let other = try Engine.open(at: "/copy", options: options, environment: disk.environment)
    if let error = other.put("a", .integer(2)) { return "\(error)" }
    try other.close()
    do throws(EngineError) {
      try engine.backup(to: "/copy")
      return "was written over it"
    } catch {}
    let again = try Engine.open(at: "/copy", options: options, environment: disk.environment)
    return again.integer(at: "a") == 2 ? nil : "another tree"
  }

  @Sendable private static func backupFails() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    for number in 1...3 {
      disk.inject(DiskFault(.error(EIO), of: [.synchronize], at: number, pathPart: "/copy/"))
      do throws(EngineError) {
        try engine.backup(to: "/copy")
      } catch {
        if disk.exists("/copy") { return "left \(disk.names(in: "/copy"))" }
        disk.removeFaults()
        continue
      }
      return number > 1 ? nil : "nothing failed"
    }
    return nil
  }

  @Sendable private static func backupBesideOthers() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    try disk.createDirectory("/copy")
    try disk.make("/copy/notes", [7])
    disk.inject(DiskFault(.error(EIO), of: [.synchronize], at: 1, pathPart: "/copy/"))
    do throws(EngineError) {
      try engine.backup(to: "/copy")
      return "nothing failed"
    } catch {}
    return disk.names(in: "/copy") == ["notes"] ? nil : "left \(disk.names(in: "/copy"))"
  }
}
