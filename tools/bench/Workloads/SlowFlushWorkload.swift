import Dendro
import DendroEngine
import Foundation

extension Comparison {
  /// How well writers share a flush, if it takes a millisecond more than the disk needs.
  static let slowFlushes = Comparison(
    "64 in flight, 1 ms added to each flush", "sets",
    [
      contestant("setValue and synchronize() by threads") { sets, database in
        let root = database.reference()
        return try Measurement.blocking(sets.count) {
          try Latencies(sets.count).inThreads(64) { index in
            root.child(sets.paths[index]).setValue(sets.values[index])
            try database.synchronize()
          }
        }
      },
      contestant("await setValue by tasks") { sets, database in
        let root = database.reference()
        return try await Measurement.awaiting(sets.count) {
          try await Latencies(sets.count).inTasks(64) { index in
            try await root.child(sets.paths[index]).setValue(sets.values[index])
          }
        }
      },
      contestant("completion blocks") { sets, database in
        let root = database.reference()
        let places = DispatchSemaphore(value: 64)
        let measurement = try Measurement.blocking(sets.count) {
          for index in 0..<sets.count {
            places.wait()
            root.child(sets.paths[index]).setValue(sets.values[index]) { _, _ in places.signal() }
          }
          for _ in 0..<64 { places.wait() }
        }
        for _ in 0..<64 { places.signal() }
        return measurement
      },
    ])

  private static func contestant(
    _ name: String, _ write: @escaping @Sendable (PostSets, Database) async throws -> Measurement
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let sets = PostSets(count: turn.scaled(64_000))
      let database = try Database.open(
        at: turn.directory.path, options: .withoutCheckpoints(.everyCommit),
        environment: SlowFlushes.environment, mode: .readWrite)
      var measurement = try await write(sets, database)
      let statistics = database.statistics
      try expect(statistics.lastDurableWrite == UInt64(sets.count), "every set is durable")
      try sets.expectAll(in: database)
      measurement.add(
        "group", "sets a flush", Double(sets.count) / Double(max(1, statistics.synchronizeCount)))
      try await database.close()
      return measurement
    }
  }
}
