import DendroTesting
import Foundation
import Testing

@testable import DendroStorage

/// When a writer compares the paths of its lock file and its segment with the files that it has open.
@Suite("Comparing paths before an append")
struct PathComparisonTests {
  @Test("a durable write takes one write, one synchronize, and one look at the watch")
  func calls() throws {
    let disk = SimulatedDisk()
    let writer = try newLog(try open(disk))
    try writer.append(payload(0))
    let count = disk.operationCount
    try writer.append(payload(1))
    #expect(disk.trace[count...].map(\.kind) == [.watch, .write, .synchronize])
  }

  @Test("if there is no watch, the paths are compared before each append")
  func withoutWatch() throws {
    let disk = SimulatedDisk()
    disk.inject(
      .failure(of: .watch, at: 1, with: SystemError.notSupported.code, isPermanent: true))
    let writer = try newLog(try open(disk))
    try writer.append(payload(0))
    let count = disk.operationCount
    try writer.append(payload(1))
    #expect(
      disk.trace[count...].map(\.kind) == [.identity, .identity, .write, .synchronize])
    try disk.rename(root + "/dendro.lock", to: root + "/elsewhere")
    #expect(throws: StorageError.self) { try writer.append(payload(2)) }
  }

  @Test("a watch that fails later makes every append compare")
  func lostWatch() throws {
    let disk = SimulatedDisk()
    let writer = try newLog(try open(disk))
    try writer.append(payload(0))
    disk.inject(
      .failure(of: .watch, at: 1, with: SystemError.inputOutput.code, isPermanent: true))
    let count = disk.operationCount
    try writer.append(payload(1))
    #expect(
      disk.trace[count...].map(\.kind) == [.watch, .identity, .identity, .write, .synchronize])
  }

  @Test("the move of a directory above is found within a second, also after the clock was set back")
  func movedParent() throws {
    for step in [1000, -1] as [Int64] {
      let disk = SimulatedDisk()
      let path = "/above/db"
      let directory = try DatabaseDirectory.open(
        path, environment: disk.environment, mode: .readWrite(create: true))
      let writer = try newLog(directory)
      try writer.append(payload(0))
      try disk.rename("/above", to: "/moved")
      disk.clock.advance(by: step)
      #expect(throws: StorageError.self) { try writer.append(payload(1)) }
      guard case .ownershipLost = writer.poison else {
        Issue.record("\(String(describing: writer.poison))")
        continue
      }
    }
  }

  /// What another process does to the directory at `path`, which has a segment at `segment`.
  private static let changes:
    [(what: String, change: @Sendable (_ path: String, _ segment: String) throws -> Void)] = [
      ("the lock file is removed", { path, _ in try remove(path + "/dendro.lock") }),
      (
        "the lock file is removed and created again",
        { path, _ in
          try remove(path + "/dendro.lock")
          try Data().write(to: URL(fileURLWithPath: path + "/dendro.lock"))
        }
      ),
      (
        "another file is renamed to the lock file",
        { path, _ in
          try Data().write(to: URL(fileURLWithPath: path + "/new"))
          try #require(rename(path + "/new", path + "/dendro.lock") == 0)
        }
      ),
      (
        "the lock file is moved away",
        { path, _ in try #require(rename(path + "/dendro.lock", path + "/../lock") == 0) }
      ),
      ("the segment is removed", { _, segment in try remove(segment) }),
      (
        "the segment is renamed",
        { path, segment in try #require(rename(segment, path + "/elsewhere") == 0) }
      ),
      (
        "the directory is moved",
        { path, _ in try #require(rename(path, path + "-moved") == 0) }
      ),
      (
        "another directory stands there",
        { path, _ in
          try #require(rename(path, path + "-moved") == 0)
          try #require(mkdir(path, 0o700) == 0)
        }
      ),
    ]

  private static func remove(_ path: String) throws { try #require(unlink(path) == 0) }

  /// The clock stands still, so that the watch alone can notice.
  @Test("on a real disk, the next append notices", arguments: changes.map(\.what))
  func realDisk(what: String) throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path + "/db"
    let environment = Environment(
      fileSystem: DiskFileSystem(), clock: SimulatedClock(), randomness: SystemRandomness())
    let directory = try DatabaseDirectory.open(
      path, environment: environment, mode: .readWrite(create: true))
    let writer = try newLog(directory)
    for number in 0..<3 { try writer.append(payload(number)) }
    try #require(Self.changes.first { $0.what == what })
      .change(path, directory.path(of: writer.segmentName))
    #expect(throws: StorageError.self) { try writer.append(payload(3)) }
    guard case .ownershipLost = writer.poison else {
      Issue.record("\(String(describing: writer.poison))")
      return
    }
  }

  @Test("a roll and removals of old segments are no loss")
  func ownChanges() throws {
    let temporary = try TemporaryDirectory()
    let directory = try DatabaseDirectory.open(
      temporary.path + "/db", environment: .system, mode: .readWrite(create: true))
    let writer = try newLog(directory)
    for number in 0..<3 {
      let old = writer.segmentName
      try writer.append(payload(number))
      try writer.roll(time: 0)
      if number > 0 { try directory.removeSegment(old) }
    }
    try writer.append(payload(3))
    #expect(writer.poison == nil)
  }
}
