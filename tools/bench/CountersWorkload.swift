import Dendro
import DendroTesting

extension Workload {
  static let counters = Workload(
    name: "counters",
    sentence: """
      400,000 increments of 1,000 counters, buffered, one synchronize at the end: with
      increment(by:), and with the server value.
      """
  ) { session in
    let count = session.scaled(400_000)
    var generator = SeededRandomness(seed: 9)
    let paths = (0..<count).map { _ in
      // Some counters are hot.
      let number = Int.random(
        in: 0..<Int.random(in: 1...1_000, using: &generator), using: &generator)
      return "counters/post-\(number)/stars"
    }
    func contestant(
      _ name: String, _ write: @escaping (DatabaseReference) -> Void
    ) -> Contestant {
      Contestant(name: name, count: count) {
        try await session.withDirectory { url in
          let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
          let (_, cost) = try await measured {
            try increment(paths, in: database, write)
          }
          let total = try await database.reference(withPath: "counters").getData()
          let stars = total.reduce(0) { $0 + ($1["stars"].int ?? 0) }
          try expect(stars == count, "every increment counts")
          try await database.close()
          return cost
        }
      }
    }
    try await session.compare(
      "counters", "increment",
      [
        contestant("increment(by:)") { $0.increment(by: 1) },
        contestant("ServerValue.increment") { $0.setValue(ServerValue.increment(1)) },
      ])
  }
}

private func increment(
  _ paths: [String], in database: Database, _ write: (DatabaseReference) -> Void
) throws {
  let root = database.reference()
  for path in paths { write(root.child(path)) }
  try database.synchronize()
}
