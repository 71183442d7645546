import Dendro
import DendroTesting

extension Workload {
  static let growth = Workload(
    "growth", row: "growth",
    """
    Sets and gets of leaves that are 3, 10 and 32 levels deep; and the last 100 of 10,000, 100,000 and \
    1 million children.
    """,
    [
      Comparison("sets by depth", "sets", [3, 10, 32].map { sets(depth: $0) }),
      Comparison("gets by depth", "gets", [3, 10, 32].map { gets(depth: $0) }),
      Comparison(
        "last 100 by key", "queries",
        [last(of: 10_000), last(of: 100_000), last(of: 1_000_000)]),
    ])

  /// The paths of small sets, below a path that makes them so deep.
  private static func paths(_ sets: PostSets, depth: Int) -> [String] {
    let prefix = (0..<depth - 3).map { "level-\($0)/" }.joined()
    return sets.paths.map { prefix + $0 }
  }

  private static func sets(depth: Int) -> Contestant {
    Contestant("dendro, \(depth) levels") { turn in
      let sets = PostSets(count: turn.scaled(200_000))
      let paths = paths(sets, depth: depth)
      return try await turn.withDatabase { database in
        let root = database.reference()
        let measurement = try Measurement.blocking(sets.count) {
          for index in 0..<sets.count { root.child(paths[index]).setValue(sets.values[index]) }
          try database.synchronize()
        }
        try expect(database.statistics.lastDurableWrite == UInt64(sets.count), "all is durable")
        return measurement
      }
    }
  }

  private static func gets(depth: Int) -> Contestant {
    Contestant("dendro, \(depth) levels") { turn in
      let sets = PostSets(count: turn.scaled(200_000))
      var generator = SeededRandomness(seed: 13)
      let paths = paths(sets, depth: depth)
      let order = paths.shuffled(using: &generator)
      return try await turn.withDatabase { database in
        write(paths, sets.values, to: database)
        var byteCount = 0
        let measurement = try Measurement.blocking(order.count) {
          for path in order {
            byteCount += try database.read { try $0.string(at: path)?.utf8.count ?? 0 }
          }
        }
        try expect(byteCount == 20 * order.count, "every leaf is read")
        return measurement
      }
    }
  }

  private static func write(_ paths: [String], _ values: [String], to database: Database) {
    let root = database.reference()
    for index in paths.indices { root.child(paths[index]).setValue(values[index]) }
  }

  private static func last(of childCount: Int) -> Contestant {
    Contestant("dendro, of \(childCount.separated) children") { turn in
      let childCount = turn.scaled(childCount)
      let queryCount = turn.scaled(20_000)
      return try await turn.withDatabase { database in
        let paths = (0..<childCount).map { "list/key-\(10_000_000 + $0)" }
        write(paths, paths, to: database)
        let last = database.reference(withPath: "list").queryOrderedByKey().queryLimited(
          toLast: 100)
        var shownCount = 0
        let measurement = try await Measurement.awaiting(queryCount) {
          for _ in 0..<queryCount { shownCount += Int(try await last.getData().childrenCount) }
        }
        try expect(shownCount == queryCount * 100, "100 children are shown")
        return measurement
      }
    }
  }
}
