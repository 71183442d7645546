import Dendro
import DendroTesting
import Foundation

extension Workload {
  static let sizes = Workload(
    "sizes", row: "growth",
    """
    The same work at three sizes each: sets and gets of random leaves of 10,000, 100,000 and 1 million; sets \
    with 10, 1,000 and 100,000 listeners elsewhere; opening as many writes from the log alone; opening \
    checkpoints of 10,000, 1 million and 5 million leaves until the first leaf is read; and a string of 10 MB.
    """,
    [
      Comparison("sets by size", "sets", leafCounts.map(sets(of:))),
      Comparison("gets by size", "gets", leafCounts.map(gets(of:))),
      Comparison("sets by listeners", "sets", [10, 1_000, 100_000].map(sets(listeners:))),
      Comparison("log by size", "writes", leafCounts.map(log(of:))),
      Comparison(
        "first leaf after opening", "openings",
        [10_000, 1_000_000, 5_000_000].map {
          firstRead("dendro, of \($0.separated) leaves", of: $0)
        }),
      Comparison("a string of 10 MB", "sets and gets", [longString]),
    ])

  private static let leafCounts = [10_000, 100_000, 1_000_000]

  /// Which leaves are written or read, in which order.
  private static func order(_ count: Int, of leafCount: Int) -> [Int] {
    var generator = SeededRandomness(seed: 17)
    return (0..<count).map { _ in Int.random(in: 0..<leafCount, using: &generator) }
  }

  private static func sets(of leafCount: Int) -> Contestant {
    Contestant("dendro, of \(leafCount.separated) leaves") { turn in
      let sets = PostSets(count: turn.scaled(leafCount))
      let order = order(turn.scaled(200_000), of: sets.count)
      // A set of the value that is there is no write.
      let values = order.indices.map { "value \(1_000_000 + $0) of 20" }
      return try await turn.withDatabase { database in
        try sets.write(to: database)
        let root = database.reference()
        let measurement = try Measurement.blocking(order.count) {
          for (number, index) in order.enumerated() {
            root.child(sets.paths[index]).setValue(values[number])
          }
          try database.synchronize()
        }
        let expected = UInt64(sets.count + order.count)
        try expect(database.statistics.lastDurableWrite == expected, "all is durable")
        return measurement
      }
    }
  }

  private static func gets(of leafCount: Int) -> Contestant {
    Contestant("dendro, of \(leafCount.separated) leaves") { turn in
      let sets = PostSets(count: turn.scaled(leafCount))
      let order = order(turn.scaled(200_000), of: sets.count)
      return try await turn.withDatabase { database in
        try sets.write(to: database)
        var byteCount = 0
        let measurement = try Measurement.blocking(order.count) {
          for index in order {
            byteCount += try database.read {
              try $0.string(at: sets.paths[index])?.utf8.count ?? 0
            }
          }
        }
        try expect(byteCount == 20 * order.count, "every leaf is read")
        return measurement
      }
    }
  }

  private static func sets(listeners listenerCount: Int) -> Contestant {
    Contestant("dendro, \(listenerCount.separated) listeners elsewhere") { turn in
      let sets = PostSets(count: turn.scaled(200_000))
      return try await turn.withDatabase { database in
        let root = database.reference()
        for number in 0..<turn.scaled(listenerCount) {
          root.child("elsewhere/\(number % 1_000)/\(number)").observe(.value) { _ in }
        }
        await eventsDelivered(at: root.child("elsewhere/0/0"))
        return try Measurement.blocking(sets.count) {
          for index in 0..<sets.count {
            root.child(sets.paths[index]).setValue(sets.values[index])
          }
          try database.synchronize()
        }
      }
    }
  }

  private static func log(of writeCount: Int) -> Contestant {
    Contestant(
      "dendro, of \(writeCount.separated) writes",
      prepare: { turn in
        try await turn.withDatabase {
          try PostSets(count: turn.scaled(writeCount)).write(to: $0)
        }
      },
      measure: { turn in
        let count = turn.scaled(writeCount)
        var opened: Database?
        let measurement = try Measurement.blocking(count) {
          opened = try Database.open(
            at: turn.directory.path, options: .withoutCheckpoints(.onRequest))
        }
        let replayed = opened?.recoveryReport.replayedWriteCount
        try expect(replayed == UInt64(count), "every write was replayed")
        try await opened?.close()
        return measurement
      })
  }

  private static let longString = Contestant("dendro") { turn in
    let text = String(repeating: "0123456789", count: 1_048_576)
    let count = turn.scaled(20)
    return try await turn.withDatabase(.everyCommit) { database in
      let leaf = database.reference(withPath: "files/long")
      var byteCount = 0
      let measurement = try await Measurement.awaiting(count) {
        for _ in 0..<count {
          try await leaf.setValue(text)
          byteCount += try await leaf.getData().string?.utf8.count ?? 0
        }
      }
      try expect(byteCount == count * text.utf8.count, "all of it is read")
      return measurement
    }
  }
}
