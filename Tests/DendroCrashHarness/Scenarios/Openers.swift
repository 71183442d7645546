import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Synchronization

/// Which processes may use a directory, and what becomes of foreign files.
package enum Openers {
  package static let scenarios = [
    Scenario("a second opener", second),
    Scenario("readers beside a writer that removes files", reader),
    Scenario("a reader changes nothing", readerChangesNothing),
    Scenario("files of other names", foreignFiles),
    Scenario("a lock file that was replaced", replacedLock),
    Scenario("a directory that was replaced", replacedDirectory),
    Scenario("a segment that was replaced", replacedSegment),
    Scenario("a directory above that was moved", movedParent),
    Scenario("a fork", fork),
  ]

  @Sendable private static func second() throws {
    let disk = SimulatedDisk(seed: 1)
    let first = try EngineRecording.open(disk)
    let error = try requireError("was let in") { () throws(EngineError) in
      try EngineRecording.open(disk)
    }
    guard case .storage(.locked) = error else { throw Violation("refused as \(error)") }
    try first.close()
    try EngineRecording.open(disk).close()
  }

  @Sendable private static func reader() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try writer.put("a", .integer(0))
    try writer.checkpoint()
    let reader = try Engine.open(
      at: EngineRecording.directory, options: EngineRecording.options(),
      environment: disk.environment, mode: .readOnly)
    let names = disk.names(in: EngineRecording.directory)
    for value in 1...4 {
      try writer.put("a", .integer(Int64(value)))
      try writer.checkpoint()
    }
    let lost = Set(names).subtracting(disk.names(in: EngineRecording.directory))
    if !lost.isEmpty { throw Violation("\(lost.sorted()) were removed below a reader") }
    guard try reader.refresh() == writer.head.lsn else { throw Violation("the reader is behind") }
    try reader.close()
  }

  @Sendable private static func readerChangesNothing() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try writer.put("a", .integer(1))
    // A crash in the next append, and in the middle of making two files.
    let crashed = disk.copy()
    guard let segment = crashed.segmentPaths.last else { throw Violation("no segment") }
    let end = (crashed.contents(of: segment) ?? []).lastIndex { $0 != 0 } ?? 0
    crashed.overwrite(segment, at: end + 1, with: [0xf5, 0x52, 1, 9, 9])
    try crashed.make(EngineRecording.directory + "/00000000000000000009.log.tmp", [1])
    try crashed.make(EngineRecording.directory + "/00000000000000000001.checkpoint.tmp", [1])
    let before = crashed.everything
    let reader = try Engine.open(
      at: EngineRecording.directory, options: EngineRecording.options(),
      environment: crashed.environment, mode: .readOnly)
    guard reader.head.root == writer.head.root else { throw Violation("another tree") }
    let notes = Notes()
    reader.submit(Draft(.set(Path("a"), Node(.integer(2)))), completion: notes.completion)
    guard notes.all == ["read only"], reader.head.root == writer.head.root else {
      throw Violation("a write: \(notes.all)")
    }
    try reader.close()
    try require(crashed.everything == before, "files changed")
  }

  @Sendable private static func foreignFiles() throws {
    let disk = SimulatedDisk(seed: 1)
    let writer = try EngineRecording.open(disk)
    try writer.put("a", .integer(1))
    try writer.close()
    let names = [
      "notes.tmp", "1.log", "1.log.tmp", "00000000000000000001.log.old",
      "00000000000000000001.log.torn-007", "dendro.lock.tmp", "0000000000000000000a.checkpoint",
      "00000000000000000001.log.tmp.tmp", ".tmp",
    ]
    for name in names { try disk.make(EngineRecording.directory + "/" + name, [7]) }
    let again = try EngineRecording.open(disk)
    if again.report.foreignFiles != names.sorted() {
      throw Violation("reported \(again.report.foreignFiles)")
    }
    for value in 2...5 {
      try again.put("a", .integer(Int64(value)))
      try again.checkpoint()
    }
    try again.close()
    let left = disk.everything
    for name in names where left[name] != [7] { throw Violation("\(name) was touched") }
  }

  /// Every write must be refused from now on, and change nothing.
  private static func requireRefusal(by engine: Engine) throws {
    for value in 10...11 as ClosedRange<Int64> {
      let error = try requireError("a write was acknowledged") { () throws(EngineError) in
        try engine.put("a", .integer(value))
      }
      guard case .poisoned(cause: .ownershipLost, notKnownDurable: _) = error else {
        throw Violation("refused as \(error)")
      }
    }
  }

  @Sendable private static func replacedLock() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    let lock = EngineRecording.directory + "/dendro.lock"
    try disk.rename(lock, to: EngineRecording.directory + "/elsewhere")
    try disk.make(lock)
    try requireRefusal(by: engine)
  }

  @Sendable private static func replacedDirectory() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    try disk.rename(EngineRecording.directory, to: "/elsewhere")
    let other = try EngineRecording.open(disk)
    try other.put("a", .integer(2))
    try requireRefusal(by: engine)
    try other.put("a", .integer(3))
  }

  /// No name in the directory changes: the clock makes the writer look.
  @Sendable private static func movedParent() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Engine.open(
      at: "/above/database", options: EngineRecording.options(), environment: disk.environment,
      mode: .readWrite)
    try engine.put("a", .integer(1))
    try disk.rename("/above", to: "/elsewhere")
    disk.clock.advance(by: 1000)
    try requireRefusal(by: engine)
  }

  @Sendable private static func replacedSegment() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    guard let path = disk.segmentPaths.last, let bytes = disk.contents(of: path) else {
      throw Violation("no segment")
    }
    try disk.remove(path)
    try disk.make(path, bytes)
    try requireRefusal(by: engine)
  }

  @Sendable private static func fork() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let draft = Draft(.set(Path("a"), Node(.integer(1))))
    let isRefused = Atomic<Bool>(false)
    let child = try ForkedChild {
      engine.submit(draft) {
        if case .failure(.forked) = $0 { isRefused.store(true, ordering: .relaxed) }
      }
      return isRefused.load(ordering: .relaxed) ? 0 : 1
    }
    try require(child.wait() == 0, "the child was not refused")
    try engine.put("a", .integer(2))
  }
}
