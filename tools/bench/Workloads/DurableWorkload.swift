import Dendro
import DendroPlatform
import Foundation
import Synchronization

extension Workload {
  static let durable = Workload(
    "durable", row: "W2",
    """
    Small sets, each durable before its caller continues: one caller, 8 and 64 of them as threads and as \
    tasks, and 64 sets in flight from one thread.
    """,
    [
      Comparison(
        "1 caller", "sets", turnsPerRound: 3,
        [
          blocking(1, .everyCommit), blocking(1, .onRequest), withSemaphore, tasks(1),
          peer(.levelDB, 1), peer(.rocksDB, 1), peer(.sqlite, 1), peer(.lmdb, 1), raw,
        ]),
      Comparison(
        "8 callers", "sets", turnsPerRound: 3,
        [
          blocking(8, .everyCommit), blocking(8, .onRequest), tasks(8), peer(.levelDB, 8),
          peer(.rocksDB, 8),
        ]),
      Comparison(
        "64 callers", "sets", turnsPerRound: 3,
        [
          blocking(64, .everyCommit), blocking(64, .onRequest), tasks(64), peer(.levelDB, 64),
          peer(.rocksDB, 64),
        ]),
      Comparison(
        "64 sets in flight", "sets", turnsPerRound: 3, [completionBlocks, pipelinedRedis]),
      .slowFlushes,
    ])

  private static func sets(_ callerCount: Int, _ turn: Turn) -> PostSets {
    PostSets(count: turn.scaled(callerCount == 1 ? 4_000 : callerCount == 8 ? 16_000 : 64_000))
  }

  // MARK: Dendro

  /// Threads that block: each sets and then waits for the disk.
  private static func blocking(_ callerCount: Int, _ durability: Database.Durability) -> Contestant
  {
    let name = durability == .everyCommit ? "everyCommit" : "onRequest"
    return Contestant("dendro, setValue and synchronize(), \(name)") { turn in
      let sets = sets(callerCount, turn)
      return try await turn.withDatabase(durability) { database in
        let root = database.reference()
        let latencies = Latencies(sets.count)
        let measurement = try Measurement.blocking(sets.count) {
          try latencies.inThreads(callerCount) { index in
            root.child(sets.paths[index]).setValue(sets.values[index])
            try database.synchronize()
          }
        }
        return try checked(measurement, of: sets, in: database, latencies: latencies)
      }
    }
  }

  /// One thread that waits for the completion block of each set.
  private static let withSemaphore = Contestant("dendro, completion block and semaphore") { turn in
    let sets = sets(1, turn)
    return try await turn.withDatabase(.everyCommit) { database in
      let root = database.reference()
      let latencies = Latencies(sets.count)
      let completed = DispatchSemaphore(value: 0)
      let measurement = try Measurement.blocking(sets.count) {
        try latencies.inThreads(1) { index in
          root.child(sets.paths[index]).setValue(sets.values[index]) { _, _ in completed.signal() }
          completed.wait()
        }
      }
      return try checked(measurement, of: sets, in: database, latencies: latencies)
    }
  }

  private static func tasks(_ callerCount: Int) -> Contestant {
    Contestant("dendro, await setValue") { turn in
      let sets = sets(callerCount, turn)
      return try await turn.withDatabase(.everyCommit) { database in
        let root = database.reference()
        let latencies = Latencies(sets.count)
        let measurement = try await Measurement.awaiting(sets.count) {
          try await latencies.inTasks(callerCount) { index in
            try await root.child(sets.paths[index]).setValue(sets.values[index])
          }
        }
        return try checked(measurement, of: sets, in: database, latencies: latencies)
      }
    }
  }

  private static let completionBlocks = Contestant("dendro, completion blocks") { turn in
    let sets = sets(64, turn)
    return try await turn.withDatabase(.everyCommit) { database in
      let root = database.reference()
      let failureCount = Atomic<Int>(0)
      let completedCount = Atomic<Int>(0)
      let places = DispatchSemaphore(value: 64)
      let measurement = try Measurement.blocking(sets.count) {
        for index in 0..<sets.count {
          places.wait()
          root.child(sets.paths[index]).setValue(sets.values[index]) { error, _ in
            if error != nil { failureCount.add(1, ordering: .relaxed) }
            completedCount.add(1, ordering: .relaxed)
            places.signal()
          }
        }
        for _ in 0..<64 { places.wait() }
      }
      for _ in 0..<64 { places.signal() }
      try expect(failureCount.load(ordering: .relaxed) == 0, "no set fails")
      try expect(completedCount.load(ordering: .relaxed) == sets.count, "every set completes")
      return try checked(measurement, of: sets, in: database, latencies: nil)
    }
  }

  private static func checked(
    _ measurement: Measurement, of sets: PostSets, in database: Database, latencies: Latencies?
  ) throws -> Measurement {
    let statistics = database.statistics
    try expect(statistics.lastDurableWrite == UInt64(sets.count), "every set is durable")
    try sets.expectAll(in: database)
    var measurement = measurement
    latencies.map { measurement.addLatencies($0.all) }
    let writesPerSynchronize = Double(sets.count) / Double(max(1, statistics.synchronizeCount))
    measurement.add("group", "sets a synchronize", writesPerSynchronize)
    measurement.add("log", "bytes a set", Double(statistics.logByteCount) / Double(sets.count))
    return measurement
  }

  // MARK: Peers

  private static func peer(_ kind: PeerKind, _ callerCount: Int) -> Contestant? {
    .peer(kind, nil, .durable) { turn, peer in
      let sets = sets(callerCount, turn)
      let entries = sets.entries
      let latencies = Latencies(sets.count)
      // LevelDB and RocksDB may be used by any thread; the others are used by one.
      nonisolated(unsafe) let peer = peer
      var measurement = try Measurement.blocking(sets.count, peer) {
        try latencies.inThreads(callerCount) { index in
          try peer.put(entries.key(index), entries.value(index))
        }
      }
      try sets.expectSome(in: peer, entries)
      measurement.addLatencies(latencies.all)
      return measurement
    }
  }

  private static var pipelinedRedis: Contestant? {
    #if canImport(CDendroRedis)
      .redis("one connection", .durable) { turn, redis in
        let sets = sets(64, turn)
        let entries = sets.entries
        let measurement = try Measurement.blocking(sets.count, redis) {
          for index in 0..<entries.count {
            try redis.connection.append(
              RedisWord.set.bytes, entries.key(index), entries.value(index))
            try redis.connection.drain(to: 63)
          }
          try redis.connection.drain()
        }
        try sets.expectSome(in: redis, entries)
        return measurement
      }
    #else
      nil
    #endif
  }

  /// What the disk can do: the bytes of a set are written and synchronized, in a file that is there with its
  /// full length already.
  private static let raw = Contestant("pwrite and fdatasync") { turn in
    let sets = sets(1, turn)
    let entries = sets.entries
    let byteCount = (0..<entries.count).reduce(0) {
      $0 + entries.key($1).count + entries.value($1).count
    }
    try FileManager.default.createDirectory(at: turn.directory, withIntermediateDirectories: true)
    let url = turn.directory.appendingPathComponent("raw")
    try Data(count: byteCount).write(to: url)
    let file = DendroPlatform.open(url.path, O_RDWR)
    try expect(file >= 0 && fsync(file) == 0, "the file is there")
    defer { DendroPlatform.close(file) }
    let latencies = Latencies(sets.count)
    // Key and value lie beside each other.
    var offset = 0
    var measurement = try Measurement.blocking(sets.count) {
      for index in 0..<entries.count {
        let count = entries.key(index).count + entries.value(index).count
        let start = ContinuousClock.now
        let written = pwrite(file, entries.key(index).baseAddress, count, off_t(offset))
        try expect(written == count && fdatasync(file) == 0, "the disk takes it")
        latencies.record(index, since: start)
        offset += count
      }
    }
    try expect(try Data(contentsOf: url).count == byteCount, "the file has its length")
    measurement.addLatencies(latencies.all)
    return measurement
  }
}
