import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization

/// What is promised of durability, of a disk that refuses, and of closing.
package enum Promises {
  package static let sweep = Sweep.cases(
    "promises",
    [
      Case("synchronize() under the weakest durability", barrier),
      Case("closing under the weakest durability", closing),
      Case("an interval that is over", interval),
      Case("what is acknowledged is not yet durable", durableKnowledge),
      Case("which writes are in doubt", doubt),
      Case("a failure that nobody waits for", unreported),
      Case("closing after the disk refused", closingTells),
      Case("a write after the close", afterClose),
      Case("an engine that nobody holds", released),
      Case("a poisoned engine admits nothing", poisoned),
      Case("the numbers of what was taken back", numbers),
      Case("checkpoints on a full disk", failingCheckpoints),
      Case("a tree that goes too deep", tooDeep),
    ])

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

  @Sendable private static func barrier() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk, .none)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    try engine.synchronize()
    return try integer(at: "a", after: disk) == 1 ? nil : "lost"
  }

  @Sendable private static func closing() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk, .none)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    try engine.close()
    return try integer(at: "a", after: disk) == 1 ? nil : "lost"
  }

  @Sendable private static func interval() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk, .interval(.zero))
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    return try integer(at: "a", after: disk) == 1 ? nil : "lost"
  }

  @Sendable private static func durableKnowledge() throws -> String? {
    let engine = try open(SimulatedDisk(seed: 1), .none)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    let early = engine.statistics().durableLSN
    try engine.synchronize()
    let late = engine.statistics().durableLSN
    return early == .zero && late == LogSequenceNumber(1) ? nil : "\(early), then \(late)"
  }

  // MARK: The disk refuses

  @Sendable private static func doubt() throws -> String? {
    for isRoll in [false, true] {
      let disk = SimulatedDisk(seed: 1)
      let engine = try open(disk, .none)
      for path in ["a", "b"] {
        if let error = engine.put(path, .integer(1)) { return "\(error)" }
      }
      disk.inject(.failedSynchronize(at: 1, pages: .reverted))
      do throws(EngineError) {
        if isRoll { try engine.roll() } else { try engine.synchronize() }
        return "nothing failed"
      } catch {
        guard case .poisoned(cause: _, notKnownDurable: let range) = error,
          range == LogSequenceNumber(1)...LogSequenceNumber(2)
        else { return "told \(error)" }
      }
    }
    return nil
  }

  @Sendable private static func unreported() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let told = Mutex<[LogSequenceNumber]>([])
    var options = EngineRecording.options()
    options.unreportedFailure = { _, lsn in told.withLock { $0.append(lsn) } }
    let engine = try EngineRecording.open(disk, options)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    engine.pump()
    let all = told.withLock { $0 }
    return all == [LogSequenceNumber(1)] ? nil : "told of \(all)"
  }

  @Sendable private static func closingTells() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    guard engine.put("a", .integer(1)) != nil else { return "was acknowledged" }
    do throws(EngineError) {
      try engine.close()
      return "nothing was told"
    } catch {
      return nil
    }
  }

  private final class CommitCount: CommitObserver {
    let count = Atomic<Int>(0)

    func committed(_ commit: borrowing Commit, root: borrowing Node) {
      count.add(1, ordering: .relaxed)
    }
  }

  @Sendable private static func poisoned() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    disk.inject(.failedSynchronize(at: 1, pages: .reverted))
    guard engine.put("a", .integer(1)) != nil else { return "was acknowledged" }
    let commits = CommitCount()
    engine.setObserver(commits)
    guard let error = engine.put("a", .integer(2)) else { return "was acknowledged" }
    guard case .poisoned = error else { return "refused as \(error)" }
    let count = commits.count.load(ordering: .relaxed)
    return count == 0 ? nil : "listeners were told \(count) times"
  }

  @Sendable private static func numbers() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    if let error = engine.put("a", .integer(1)) { return "\(error)" }
    disk.inject(.failure(of: .write, at: 1, with: ENOSPC))
    guard engine.put("b", .integer(2)) != nil else { return "was acknowledged" }
    // The first one may still be refused: it is what looks for room.
    _ = engine.put("c", .integer(3))
    if let error = engine.put("c", .integer(4)) { return "\(error)" }
    let last = engine.head.lsn
    return last == LogSequenceNumber(2) || last == LogSequenceNumber(3)
      ? nil : "the last write is \(last)"
  }

  @Sendable private static func failingCheckpoints() throws -> String? {
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
      if let error = engine.put("t/\(index)", text) { return "\(error)" }
    }
    let count = disk.trace.count { $0.kind == .create && $0.path.contains(".checkpoint") }
    return count == 1 ? nil : "\(count) attempts"
  }

  // MARK: Closing

  @Sendable private static func afterClose() throws -> String? {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    try engine.close()
    let told = Told()
    engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: told.completion)
    return told.all == ["closed"] && engine.head.root.isEmpty ? nil : "told \(told.all)"
  }

  @Sendable private static func released() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    func use() throws {
      let engine = try EngineRecording.open(disk, EngineOptions())
      engine.submit(Draft(.set(Path("a"), Node(.integer(1)))), completion: nil)
    }
    try use()
    // The engine's thread lets the directory go a moment after the last reference went.
    for _ in 0..<1000 {
      do throws(EngineError) {
        return try EngineRecording.open(disk).integer(at: "a") == 1 ? nil : "another tree"
      } catch {
        guard case .storage(.locked) = error else { return "refused as \(error)" }
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
    return "the directory is still locked"
  }

  // MARK: What is admitted

  @Sendable private static func tooDeep() throws -> String? {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    let told = Told()
    engine.submit(Draft(.set(Path("a"), Rules.nested(40))), completion: told.completion)
    engine.pump()
    try engine.close()
    let root = try EngineRecording.open(disk).head.root
    return told.all == ["invalid"] && root.isEmpty ? nil : "told \(told.all)"
  }
}
