import Dendro
import DendroTesting

extension Workload {
  static let counters = Workload(
    "counters", row: "W4",
    """
    400,000 increments of 1,000 counters, of which the n-th is hit in proportion to 1/n; each atomic, \
    buffered, one synchronize at the end.
    """,
    [
      Comparison(
        "increments", "increments",
        [
          dendro("child(path).increment(by:)") { root, increments in
            for counter in increments.order {
              root.child(increments.paths[counter]).increment(by: 1)
            }
          },
          dendro("increment(by:), references made before") { root, increments in
            let references = increments.paths.map { root.child($0) }
            for counter in increments.order { references[counter].increment(by: 1) }
          },
          dendro("child(path).setValue(ServerValue.increment(1))") { root, increments in
            for counter in increments.order {
              root.child(increments.paths[counter]).setValue(ServerValue.increment(1))
            }
          },
          peer(.levelDB), peer(.rocksDB), redis,
        ])
    ])

  private static func dendro(
    _ name: String, _ write: @escaping @Sendable (DatabaseReference, Increments) -> Void
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let increments = Increments(count: turn.scaled(400_000))
      return try await turn.withDatabase { database in
        let root = database.reference()
        let measurement = try Measurement.blocking(increments.count) {
          write(root, increments)
          try database.synchronize()
        }
        let stars = try database.read { view in
          try increments.paths.map { try view.int(at: $0) ?? 0 }
        }
        try increments.expectAll(stars)
        let byteCount = Double(database.statistics.logByteCount) / Double(increments.count)
        return measurement.adding("log", "bytes an increment", byteCount)
      }
    }
  }

  private static func peer(_ kind: PeerKind) -> Contestant? {
    .peer(kind, "get and put") { turn, peer in
      let increments = Increments(count: turn.scaled(400_000))
      let entries = increments.entries
      let measurement = try Measurement.blocking(increments.count, peer) {
        for counter in increments.order {
          let stars = try peer.number(at: entries.key(counter)) + 1
          try StoredNumber(stars).withBytes { try peer.put(entries.key(counter), $0) }
        }
        try peer.synchronize()
      }
      try increments.expectAll(
        try increments.paths.indices.map { Int(try peer.number(at: entries.key($0))) })
      return measurement
    }
  }

  private static var redis: Contestant? {
    #if canImport(CDendroRedis)
      .redis("1,000 commands in flight") { turn, redis in
        let increments = Increments(count: turn.scaled(400_000))
        let entries = increments.entries
        let measurement = try Measurement.blocking(increments.count, redis) {
          for counter in increments.order {
            try redis.connection.append(RedisWord.increment.bytes, entries.key(counter))
            try redis.connection.drain(to: 999)
          }
          try redis.connection.drain()
          try redis.synchronize()
        }
        var stars: [Int] = []
        for counter in increments.paths.indices {
          try redis.get(entries.key(counter)) { stars.append($0.flatMap { Int(text: $0) } ?? 0) }
        }
        try increments.expectAll(stars)
        return measurement
      }
    #else
      nil
    #endif
  }
}

private struct Increments: Sendable {
  /// Of the counters.
  let paths: [String]
  /// Which counter each increment hits.
  let order: [Int]

  init(count: Int) {
    paths = (0..<1_000).map { "posts/post-\($0)/stars" }
    // Zipf's law with the exponent 1.
    var sum = 0.0
    let sums = paths.indices.map { index in
      sum += 1 / Double(index + 1)
      return sum
    }
    var generator = SeededRandomness(seed: 9)
    order = (0..<count).map { _ in
      let target = Double.random(in: 0..<sum, using: &generator)
      var range = sums.indices
      while range.count > 1 {
        let middle = range.lowerBound + range.count / 2
        range = sums[middle - 1] > target ? range.lowerBound..<middle : middle..<range.upperBound
      }
      return range.lowerBound
    }
  }

  var count: Int { order.count }

  var entries: Entries { Entries(keys: paths, values: paths.map { _ in "" }) }

  func expectAll(_ stars: [Int]) throws {
    var expected = paths.map { _ in 0 }
    for counter in order { expected[counter] += 1 }
    try expect(stars == expected, "every increment counts")
  }
}
