import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Dispatch
import Foundation

/// Followers of the log that wait for more of it, and what stays for them.
extension Waiting {
  /// Has a task wait for what comes behind the first write.
  private static func follow(
    _ engine: Engine, _ isOver: DispatchSemaphore, _ told: Told
  ) throws -> Task<Void, Never> {
    if let error = engine.put("n", .integer(1)) { throw error }
    let reader = try engine.changes(since: .zero)
    return QueueExecutor().follow(told, isOver) {
      while let writes = try await reader.next() { told.note("\(writes.count)") }
    }
  }

  @Sendable static func followerEnds() throws -> String? {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    let told = Told()
    let isOver = DispatchSemaphore(value: 0)
    _ = try follow(engine, isOver, told)
    if let error = engine.put("n", .integer(2)) { return "\(error)" }
    while told.all.count < 2 { usleep(200) }
    try engine.close()
    isOver.wait()
    return told.all == ["1", "1", "end"] ? nil : "told \(told.all)"
  }

  @Sendable static func followerCancelled() throws -> String? {
    let engine = try EngineRecording.open(SimulatedDisk(seed: 1))
    let told = Told()
    let isOver = DispatchSemaphore(value: 0)
    try follow(engine, isOver, told).cancel()
    isOver.wait()
    try engine.close()
    return told.all == ["1", "end"] ? nil : "told \(told.all)"
  }

  /// Segments that nobody reads any more go with the next checkpoints.
  @Sendable static func followedLog() throws -> String? {
    for stays in [true, false] {
      let disk = SimulatedDisk(seed: 1)
      let engine = try EngineRecording.open(disk)
      if let error = engine.put("n", .integer(0)) { return "\(error)" }
      var reader: ChangeReader? = try engine.changes(since: .zero)
      for number in 1...6 as ClosedRange<Int64> {
        // It is at the end before each checkpoint, or gone before the first.
        if stays || number == 1 {
          let durable = engine.statistics().durableLSN
          while let reader, reader.position < durable { _ = try reader.page(upTo: durable) }
          if !stays { reader = nil }
        }
        if let error = engine.put("n", .integer(number)) { return "\(error)" }
        try engine.checkpoint()
      }
      let count = disk.segmentPaths.count
      let isHeld = withExtendedLifetime(reader) { $0 != nil }
      try engine.close()
      if count > 3 || isHeld != stays {
        return "\(count) segments are there for a follower that \(stays ? "read them" : "is gone")"
      }
    }
    return nil
  }
}
