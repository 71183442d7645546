import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Dispatch
import Foundation

/// Followers of the log that wait for more of it, and the segments that are kept for them.
extension Waiting {
  /// Starts a task that waits for the writes after the first.
  private static func follow(
    _ engine: Engine, _ isOver: DispatchSemaphore, _ notes: Notes
  ) throws -> Task<Void, Never> {
    try engine.put("n", .integer(1))
    let reader = try engine.changes(since: .zero)
    return QueueExecutor().follow(notes, isOver) {
      while let writes = try await reader.next() { notes.note("\(writes.count)") }
    }
  }

  @Sendable static func followerEnds() throws {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    let notes = Notes()
    let isOver = DispatchSemaphore(value: 0)
    _ = try follow(engine, isOver, notes)
    try engine.put("n", .integer(2))
    while notes.all.count < 2 { usleep(200) }
    try engine.close()
    isOver.wait()
    try notes.require(["1", "1", "end"])
  }

  @Sendable static func followerCancelled() throws {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    let notes = Notes()
    let isOver = DispatchSemaphore(value: 0)
    try follow(engine, isOver, notes).cancel()
    isOver.wait()
    try engine.close()
    try notes.require(["1", "end"])
  }

  /// Segments without a reader are removed with the next checkpoints.
  @Sendable static func followedLog() throws {
    for stays in [true, false] {
      let disk = SimulatedDisk(seed: 1)
      let engine = try EngineRecording.open(disk)
      try engine.put("n", .integer(0))
      var reader: ChangeReader? = try engine.changes(since: .zero)
      for number in 1...6 as ClosedRange<Int64> {
        // It is at the end before each checkpoint, or gone before the first.
        if stays || number == 1 {
          let durable = engine.statistics().durableLSN
          while let reader, reader.position < durable { _ = try reader.page(upTo: durable) }
          if !stays { reader = nil }
        }
        try engine.put("n", .integer(number))
        try engine.checkpoint()
      }
      let count = disk.segmentPaths.count
      let isHeld = withExtendedLifetime(reader) { $0 != nil }
      try engine.close()
      if count > 3 || isHeld != stays {
        throw Violation(
          "\(count) segments are there for a follower that \(stays ? "read them" : "is gone")")
      }
    }
  }
}
