import Dendro
import Foundation

extension Workload {
  static let sets = Workload(
    "sets", row: "W1",
    """
    400,000 small sets at posts/<push id>/<field>, buffered, one synchronize at the end: each atomic \
    alone, and in atomic updates of 1,000.
    """,
    [
      Comparison(
        "each alone", "sets",
        [
          dendro("child(path).setValue(String)") { root, path, value in
            root.child(path).setValue(value)
          },
          dendro("child(path).setValue(Any?)") { root, path, value in
            root.child(path).setValue(value as Any?)
          },
          dendro("child(path).setValue(Database.Value)") { root, path, value in
            root.child(path).setValue(Database.Value.string(value))
          },
          dendro("child(path).setValue(from:)") { root, path, value in
            try root.child(path).setValue(from: value)
          },
          heldReferences, peer(.levelDB, 400_000), peer(.rocksDB, 400_000), peer(.lmdb, 100_000),
          peer(.sqlite, 100_000), pipelinedRedis, peer(.redis, 40_000, "one at a time"),
          PhysicalLimits.compressing, PhysicalLimits.copying,
        ]),
      Comparison(
        "in updates of 1,000", "leaves",
        [
          typedUpdates, updates, updatesMadeInTime, batches(.levelDB), batches(.rocksDB),
          batches(.lmdb),
          batches(.sqlite),
        ]),
    ])

  // MARK: Dendro

  private static func dendro(
    _ name: String,
    _ set: @escaping @Sendable (DatabaseReference, String, String) throws -> Void
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      let sets = PostSets(count: turn.scaled(400_000))
      return try await turn.withDatabase { database in
        let root = database.reference()
        let measurement = try Measurement.blocking(sets.count) {
          for index in 0..<sets.count { try set(root, sets.paths[index], sets.values[index]) }
          try database.synchronize()
        }
        return try checked(measurement, sets, database)
      }
    }
  }

  private static let heldReferences = Contestant("dendro, references made before") { turn in
    let sets = PostSets(count: turn.scaled(400_000))
    return try await turn.withDatabase { database in
      let root = database.reference()
      let references = sets.paths.map { root.child($0) }
      let measurement = try Measurement.blocking(sets.count) {
        for index in 0..<sets.count { references[index].setValue(sets.values[index]) }
        try database.synchronize()
      }
      return try checked(measurement, sets, database)
    }
  }

  private static let typedUpdates = Contestant("dendro, update { $0.set(path, String) }") { turn in
    let sets = PostSets(count: turn.scaled(400_000))
    return try await turn.withDatabase { database in
      let root = database.reference()
      let measurement = try Measurement.blocking(sets.count) {
        for start in stride(from: 0, to: sets.count, by: 1_000) {
          root.update { update in
            for index in start..<min(sets.count, start + 1_000) {
              update.set(sets.paths[index], sets.values[index])
            }
          }
        }
        try database.synchronize()
      }
      return try checked(measurement, sets, database)
    }
  }

  /// The dictionaries are made before.
  private static let updates = Contestant("dendro, updateChildValues") { turn in
    let sets = PostSets(count: turn.scaled(400_000))
    let updates = sets.updates(of: 1_000)
    return try await turn.withDatabase { database in
      let root = database.reference()
      let measurement = try Measurement.blocking(sets.count) {
        for update in updates { root.updateChildValues(update) }
        try database.synchronize()
      }
      return try checked(measurement, sets, database)
    }
  }

  private static let updatesMadeInTime = Contestant(
    "dendro, updateChildValues, making the dictionaries"
  ) { turn in
    let sets = PostSets(count: turn.scaled(400_000))
    return try await turn.withDatabase { database in
      let root = database.reference()
      let measurement = try Measurement.blocking(sets.count) {
        for start in stride(from: 0, to: sets.count, by: 1_000) {
          var update: [AnyHashable: Any] = [:]
          for index in start..<min(sets.count, start + 1_000) {
            update[sets.paths[index]] = sets.values[index]
          }
          root.updateChildValues(update)
        }
        try database.synchronize()
      }
      return try checked(measurement, sets, database)
    }
  }

  private static func checked(
    _ measurement: Measurement, _ sets: PostSets, _ database: Database
  ) throws -> Measurement {
    let statistics = database.statistics
    try expect(
      statistics.lastDurableWrite == statistics.lastWrite && statistics.lastWrite > 0,
      "every set is durable")
    try sets.expectAll(in: database)
    let byteCount = Double(statistics.logByteCount) / Double(sets.count)
    return measurement.adding("log", "bytes a leaf", byteCount)
  }

  // MARK: Peers

  private static func peer(
    _ kind: PeerKind, _ count: Int, _ details: String? = nil
  ) -> Contestant? {
    .peer(kind, details) { turn, peer in
      let sets = PostSets(count: turn.scaled(count))
      let entries = sets.entries
      let measurement = try Measurement.blocking(sets.count, peer) {
        for index in 0..<entries.count { try peer.put(entries.key(index), entries.value(index)) }
        try peer.synchronize()
      }
      try sets.expectSome(in: peer, entries)
      return measurement
    }
  }

  private static func batches(_ kind: PeerKind) -> Contestant? {
    .peer(kind) { turn, peer in
      let sets = PostSets(count: turn.scaled(400_000))
      let entries = sets.entries
      let measurement = try Measurement.blocking(sets.count, peer) {
        for start in stride(from: 0, to: entries.count, by: 1_000) {
          try peer.batch { put in
            for index in start..<min(entries.count, start + 1_000) {
              try put(entries.key(index), entries.value(index))
            }
          }
        }
        try peer.synchronize()
      }
      try sets.expectSome(in: peer, entries)
      return measurement
    }
  }

  private static var pipelinedRedis: Contestant? {
    #if canImport(CDendroRedis)
      .redis("1,000 commands in flight") { turn, redis in
        let sets = PostSets(count: turn.scaled(400_000))
        let entries = sets.entries
        let measurement = try Measurement.blocking(sets.count, redis) {
          for index in 0..<entries.count {
            try redis.connection.append(
              RedisWord.set.bytes, entries.key(index), entries.value(index))
            try redis.connection.drain(to: 999)
          }
          try redis.connection.drain()
          try redis.synchronize()
        }
        try sets.expectSome(in: redis, entries)
        return measurement
      }
    #else
      nil
    #endif
  }
}
