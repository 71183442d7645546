import Dendro
import DendroTesting
import Foundation
import Synchronization

extension Comparison {
  /// Sets of leaves at random, while one checkpoint of 1 million leaves after the other is written.
  static let besideCheckpoint = Comparison(
    "sets beside checkpoints of 1 million leaves", "sets",
    [
      contestant("no checkpoint", takesCheckpoints: false),
      contestant("beside checkpoints", takesCheckpoints: true),
    ])

  private static func contestant(_ name: String, takesCheckpoints: Bool) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let sets = PostSets(count: turn.scaled(1_000_000))
      let count = turn.scaled(1_000_000)
      var generator = SeededRandomness(seed: 14)
      let order = (0..<count).map { _ in Int.random(in: 0..<sets.count, using: &generator) }
      return try await turn.withDatabase { database in
        try sets.write(to: database)
        let root = database.reference()
        let latencies = Latencies(count)
        let isOver = Atomic<Bool>(false)
        let checkpointing = Thread.running {
          while takesCheckpoints, !isOver.load(ordering: .relaxed) { try database.checkpoint() }
        }
        var measurement = try Measurement.blocking(count) {
          try latencies.inThreads(1) { number in
            let index = order[number]
            root.child(sets.paths[index]).setValue(sets.values[(index + number) % sets.count])
          }
          try database.synchronize()
        }
        isOver.store(true, ordering: .relaxed)
        try checkpointing.join()
        let checkpointCount = database.statistics.checkpointCount
        try expect(takesCheckpoints == (checkpointCount > 0), "checkpoints are written beside it")
        measurement.add("longest set", "ms", (latencies.all.max() ?? 0) * 1_000)
        measurement.add("checkpoints", "written", Double(checkpointCount))
        return measurement
      }
    }
  }
}
