import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization

// A process that lacks something for the moment: a file descriptor, or a right.

extension Past {
  static let refusals = [
    Scenario("a follower without a descriptor", followerWithoutDescriptor),
    Scenario("a roll with one descriptor left", rollWithLastDescriptor),
    Scenario("a checkpoint without a descriptor to read it", checkpointWithoutDescriptor),
    Scenario("a checkpoint whose name may be lost", doubtfulCheckpoint),
  ]

  /// Keeps the numbers of the commits.
  private final class Numbers: CommitObserver {
    let all = Mutex<[LogSequenceNumber]>([])

    func committed(_ commit: borrowing Commit, root: borrowing Node) -> Bool {
      let lsn = commit.lsn
      all.withLock { $0.append(lsn) }
      return false
    }
  }

  /// Each call of a look fails in turn: the look ends, and the next one goes on, so that listeners get every write.
  @Sendable private static func followerWithoutDescriptor() throws {
    for kind in [DiskOperation.Kind.list, .open] {
      for number in 1...20 {
        let disk = SimulatedDisk(seed: 1)
        let writer = try EngineRecording.open(disk)
        let follower = try Engine.open(
          at: EngineRecording.directory, options: EngineRecording.options(),
          environment: disk.environment, mode: .following)
        let seen = Numbers()
        follower.setObserver(seen)
        for number in 1...3 as ClosedRange<Int64> {
          try writer.put("n", .integer(number))
          try writer.roll()
        }
        disk.inject(.failure(of: kind, at: number, with: EMFILE))
        var isRefused = false
        do throws(EngineError) { try follower.refresh() } catch { isRefused = true }
        disk.removeFaults()
        let lsn = try follower.refresh()
        try require(lsn == writer.head.lsn, "it stays at \(lsn), \(kind) \(number)")
        let numbers = seen.all.withLock { $0.map(\.rawValue) }
        try require(numbers == [1, 2, 3], "listeners got \(numbers), \(kind) \(number)")
        if !isRefused { break }
      }
    }
  }

  /// A new segment takes a descriptor. No other one is needed behind its rename, where it would be uncertain what a
  /// crash leaves.
  @Sendable private static func rollWithLastDescriptor() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    try put(1...2, engine)
    disk.inject(.failure(of: .open, at: 1, with: EMFILE, isPermanent: true))
    try engine.roll()
    try put(3...3, engine)
  }

  @Sendable private static func checkpointWithoutDescriptor() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    for number in 1...2 as ClosedRange<Int64> {
      try put(number...number, engine)
      try engine.checkpoint()
    }
    try engine.close()
    guard let newest = disk.checkpointPaths.last else { throw Violation("no checkpoint") }
    disk.inject(DiskFault(.error(EMFILE), of: [.open], at: 1, pathPart: newest))
    try requireError("it was taken for damaged") { () throws(EngineError) in
      try EngineRecording.open(disk)
    }
  }

  /// The directory cannot be synchronized once the checkpoint has its name. Two others are kept.
  @Sendable private static func doubtfulCheckpoint() throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try EngineRecording.open(disk)
    for number in 1...4 as ClosedRange<Int64> {
      try put(number...number, engine)
      // The first is that of the segment behind the checkpoint.
      if number == 3 { disk.inject(.failure(of: .synchronizeDirectory, at: 2, with: EIO)) }
      do throws(EngineError) {
        try engine.checkpoint()
      } catch {
        try require(number == 3, "\(error)")
      }
      disk.removeFaults()
    }
    let names = disk.checkpointPaths
    try require(names.contains { $0.hasSuffix("2.checkpoint") }, "there are \(names)")
  }
}
