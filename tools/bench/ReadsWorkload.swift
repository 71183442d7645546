import Dendro
import DendroTesting

extension Workload {
  static let reads = Workload(
    name: "reads",
    sentence: """
      Leaves of 80,000 posts of five fields, read at random: in a view for each, all in one view, in
      one snapshot, and with getData.
      """
  ) { session in
    let sets = PostSets(count: session.scaled(400_000))
    let database = Database.inMemory()
    try sets.write(to: database)
    let count = session.scaled(400_000)
    var generator = SeededRandomness(seed: 10)
    let paths = (0..<count).map { _ in
      sets.paths[Int.random(in: 0..<sets.count, using: &generator)]
    }
    func contestant(
      _ name: String, _ read: @escaping () async throws -> Int
    ) -> Contestant {
      Contestant(name: name, count: count) {
        let (byteCount, cost) = try await measured { try await read() }
        try expect(byteCount == 20 * count, "every leaf is read")
        return cost
      }
    }
    let root = database.reference()
    try await session.compare(
      "reads", "leaf",
      [
        contestant("a view for each") {
          var byteCount = 0
          for path in paths {
            byteCount += try database.read { try $0.string(at: path)?.utf8.count ?? 0 }
          }
          return byteCount
        },
        contestant("all in one view") {
          try database.read { view in
            var byteCount = 0
            for path in paths { byteCount += try view.string(at: path)?.utf8.count ?? 0 }
            return byteCount
          }
        },
        contestant("in one snapshot") {
          let snapshot = try await root.getData()
          var byteCount = 0
          for path in paths { byteCount += snapshot[path].string?.utf8.count ?? 0 }
          return byteCount
        },
        contestant("with getData") {
          var byteCount = 0
          for path in paths {
            byteCount += try await root.child(path).getData().string?.utf8.count ?? 0
          }
          return byteCount
        },
      ])
    try await database.close()
  }
}
