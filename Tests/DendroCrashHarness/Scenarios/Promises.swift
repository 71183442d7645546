import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization

/// Durability, a disk that refuses, and closing.
package enum Promises {
  package static let scenarios = [
    Scenario("synchronize() under the weakest durability", barrier),
    Scenario("closing under the weakest durability", closing),
    Scenario("an interval that is over", interval),
    Scenario("what is acknowledged is not yet durable", durableKnowledge),
    Scenario("which writes are in doubt", doubt),
    Scenario("a failure without a completion", unreported),
    Scenario("closing after the disk refused", closingReports),
    Scenario("a write after the close", afterClose),
    Scenario("an engine that was released", released),
    Scenario("a poisoned engine admits nothing", poisoned),
    Scenario("the numbers of what was taken back", numbers),
    Scenario("checkpoints on a full disk", failingCheckpoints),
    Scenario("a tree that is too deep", tooDeep),
  ]

  private static func open(_ disk: SimulatedDisk, _ durability: Durability) throws(EngineError)
    -> Engine
  {
    var options = EngineRecording.options()
    options.durability = durability
    return try EngineRecording.open(disk, options)
  }

  /// What is at `path` after the power was lost now, with all that was pending.
  private static func integer(at path: String, after disk: SimulatedDisk) throws(EngineError)
    -> Int64?
  {
    let point = disk.crashPoint()
    return try EngineRecording.open(point.disk(point.allDropped)).integer(at: path)
  }

  // MARK: Durability

  @Sendable private static func barrier() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk, .none)
    try engine.put("a", .integer(1))
    try engine.synchronize()
    try require(try integer(at: "a", after: disk) == 1, "lost")
  }

  @Sendable private static func closing() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk, .none)
    try engine.put("a", .integer(1))
    try engine.close()
    try require(try integer(at: "a", after: disk) == 1, "lost")
  }

  @Sendable private static func interval() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk, .interval(.zero))
    try engine.put("a", .integer(1))
    try require(try integer(at: "a", after: disk) == 1, "lost")
  }

  @Sendable private static func durableKnowledge() throws {
    let engine = try open(SimulatedDisk(seed: 1), .none)
    try engine.put("a", .integer(1))
    let early = engine.statistics().durableLSN
    try engine.synchronize()
    let late = engine.statistics().durableLSN
    try require(early == .zero && late == LogSequenceNumber(1), "\(early), then \(late)")
  }

  // MARK: The disk refuses

  @Sendable private static func doubt() throws {
    for isRoll in [false, true] {
      let disk = SimulatedDisk(seed: 1)
      let engine = try open(disk, .none)
      for path in ["a", "b"] {
        try engine.put(path, .integer(1))
      }
      disk.inject(.failedSynchronize(at: 1, pages: .reverted))
      let error = try requireError("nothing failed") { () throws(EngineError) in
        if isRoll { try engine.roll() } else { try engine.synchronize() }
      }
      guard case .poisoned(cause: _, notKnownDurable: let range) = error,
        range == LogSequenceNumber(1)...LogSequenceNumber(2)
      else { throw Violation("refused as \(error)") }
    }
  }

  @Sendable private static func unreported() throws {
    let disk = SimulatedDisk(seed: 1)
    let notes = Mutex<[LogSequenceNumber]>([])
    var options = EngineRecording.options()
    options.unreportedFailure = { _, lsn in notes.withLock { $0.append(lsn) } }
    let engine = try EngineRecording.open(disk, options)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    engine.pump()
    let all = notes.withLock { $0 }
    try require(all == [LogSequenceNumber(1)], "reported \(all)")
  }

  @Sendable private static func closingReports() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    try requireError("was acknowledged") { () throws(EngineError) in
      try engine.put("a", .integer(1))
    }
    try requireError("nothing was reported") { () throws(EngineError) in try engine.close() }
  }

  private final class CommitCount: CommitObserver {
    let count = Atomic<Int>(0)

    func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
      count.add(1, ordering: .relaxed)
      return false
    }
  }

  @Sendable private static func poisoned() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    try requireError("was acknowledged") { () throws(EngineError) in
      try engine.put("a", .integer(1))
    }
    let commits = CommitCount()
    engine.setObserver(commits)
    let error = try requireError("was acknowledged") { () throws(EngineError) in
      try engine.put("a", .integer(2))
    }
    guard case .poisoned = error else { throw Violation("refused as \(error)") }
    let count = commits.count.load(ordering: .relaxed)
    try require(count == 0, "listeners were called \(count) times")
  }

  @Sendable private static func numbers() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try engine.put("a", .integer(1))
    disk.inject(.failure(of: .write, at: 1, with: ENOSPC))
    try requireError("was acknowledged") { () throws(EngineError) in
      try engine.put("b", .integer(2))
    }
    // The first one may still be refused: it is what looks for room.
    try? engine.put("c", .integer(3))
    try engine.put("c", .integer(4))
    let last = engine.head.lsn
    try require(
      last == LogSequenceNumber(2) || last == LogSequenceNumber(3), "the last write is \(last)")
  }

  @Sendable private static func failingCheckpoints() throws {
    let disk = SimulatedDisk(seed: 1)
    var options = EngineRecording.options()
    options.checkpointFactor = 1
    options.checkpointByteMin = 1000
    let engine = try EngineRecording.open(disk, options)
    disk.inject(
      DiskFault(
        .error(ENOSPC), of: [.write, .create], at: 1, isPermanent: true, pathPart: ".checkpoint"))
    var random = SeededRandomness(seed: 2)
    for index in 0..<100 {
      let bytes = (0..<300).map { _ in UInt8.random(in: 0x21...0x7e, using: &random) }
      let text = Scalar.string(String(decoding: bytes, as: UTF8.self))
      try engine.put("t/\(index)", text)
    }
    let count = disk.trace.count { $0.kind == .create && $0.path.contains(".checkpoint") }
    try require(count == 1, "\(count) attempts")
  }

  // MARK: Closing

  @Sendable private static func afterClose() throws {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    try engine.close()
    let notes = Notes()
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: notes.completion)
    try require(notes.all == ["closed"] && engine.head.root.isEmpty, "noted \(notes.all)")
  }

  @Sendable private static func released() throws {
    let disk = SimulatedDisk(seed: 1)
    func use() throws {
      let engine = try EngineRecording.open(disk, EngineOptions())
      engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    }
    try use()
    try require(try openOnceFree(disk).integer(at: "a") == 1, "another tree")
  }

  // MARK: What is admitted

  @Sendable private static func tooDeep() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let notes = Notes()
    engine.submit(Draft(.set(Path("a"), Rules.nested(40))), completion: notes.completion)
    engine.pump()
    try engine.close()
    let root = try EngineRecording.open(disk).head.root
    try require(notes.all == ["invalid"] && root.isEmpty, "noted \(notes.all)")
  }
}
