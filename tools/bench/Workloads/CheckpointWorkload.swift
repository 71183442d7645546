import Dendro
import DendroPlatform
import Foundation

extension Workload {
  static let checkpoint = Workload(
    "checkpoint", row: "W5",
    """
    A checkpoint of 400,000 leaves written; opened with every leaf loaded, and with every leaf read; opened until \
    the first leaf is read; and sets beside checkpoints.
    """,
    [
      Comparison("written", "leaves", [writing]),
      Comparison(
        "opened, all loaded", "leaves", [loading, reading, scannedLevelDB, loadedRedis]),
      Comparison(
        "opened, first leaf read", "openings",
        [firstRead("dendro", of: leafCount), peerFirstRead(.lmdb), peerFirstRead(.levelDB)]),
      .besideCheckpoint,
    ])

  private static func sets(_ turn: Turn) -> PostSets { PostSets(count: turn.scaled(leafCount)) }

  // MARK: Dendro

  private static let writing = Contestant("dendro") { turn in
    let sets = sets(turn)
    return try await turn.withDatabase { database in
      try sets.write(to: database)
      let measurement = try Measurement.blocking(sets.count) { try database.checkpoint() }
      let statistics = database.statistics
      try expect(
        statistics.lastCheckpointedWrite == UInt64(sets.count), "it is a checkpoint of all")
      return measurement.adding(
        "file", "bytes a leaf", Double(statistics.checkpointByteCount) / Double(sets.count))
    }
  }

  private static let leafCount = 400_000

  private static func prepare(_ turn: Turn, _ leafCount: Int = leafCount) async throws {
    try await turn.withDatabase { database in
      try PostSets(count: turn.scaled(leafCount)).write(to: database)
      try await database.checkpoint()
    }
  }

  /// Until the first leaf is read; all are in memory by then, as they are in Redis when it answers.
  private static let loading = whole("dendro, open with loading .whole") { database, sets in
    let value = try database.read { try $0.string(at: sets.paths[0]) }
    try expect(value == sets.values[0], "the leaf is read")
  }

  /// A string is made of each leaf.
  private static let reading = whole("dendro, open and read every leaf") { database, sets in
    let byteCount = try database.read { view in
      var byteCount = 0
      try view.child("posts") { posts in
        posts.forEachChild { _, post in
          post.forEachChild { _, leaf in byteCount += leaf.string?.utf8.count ?? 0 }
        }
      }
      return byteCount
    }
    try expect(byteCount == 20 * sets.count, "every leaf is read")
  }

  /// Opens a checkpoint with all its data, and reads.
  private static func whole(
    _ name: String, _ read: @escaping @Sendable (Database, PostSets) throws -> Void
  ) -> Contestant {
    Contestant(
      name, prepare: { try await prepare($0) },
      measure: { turn in
        let sets = sets(turn)
        var opened: Database?
        let measurement = try Measurement.blocking(sets.count) {
          var options = DatabaseOptions.withoutCheckpoints(.onRequest)
          options.loading = .whole
          let database = try Database.open(at: turn.directory.path, options: options)
          try read(database, sets)
          opened = database
        }
        guard let database = opened else { throw WrongResult(claim: "it opens") }
        let report = database.recoveryReport
        try expect(
          report.checkpointedWrite == UInt64(sets.count) && report.replayedWriteCount == 0,
          "the checkpoint alone was read")
        try sets.expectAll(in: database)
        try await database.close()
        return measurement.adding("opening alone", "s", report.elapsed / .seconds(1))
      })
  }

  /// Opens a checkpoint of so many leaves until the first leaf is read.
  static func firstRead(_ name: String, of leafCount: Int) -> Contestant {
    Contestant(
      name, prepare: { try await prepare($0, leafCount) },
      measure: { turn in
        let sets = PostSets(count: turn.scaled(leafCount))
        var opened: Database?
        var value: String?
        let measurement = try Measurement.blocking(1) {
          let database = try Database.open(
            at: turn.directory.path, options: .withoutCheckpoints(.onRequest))
          value = try database.read { try $0.string(at: sets.paths[sets.count / 2]) }
          opened = database
        }
        try expect(value == sets.values[sets.count / 2], "the leaf is read")
        try await opened?.close()
        return measurement.adding("time", "ms", measurement.cost.seconds * 1_000)
      })
  }

  // MARK: Peers

  /// - Parameter open: LevelDB is opened twice, since it brings its log into a table when it is opened.
  private static func prepare(_ turn: Turn, _ open: () throws -> any Peer) throws {
    let peer = try open()
    let entries = sets(turn).entries
    try peer.batch { put in
      for index in 0..<entries.count { try put(entries.key(index), entries.value(index)) }
    }
    try peer.synchronize()
    peer.close()
    try open().close()
  }

  private static func peerFirstRead(_ kind: PeerKind) -> Contestant? {
    guard kind.isBuilt else { return nil }
    return Contestant(
      kind.rawValue,
      prepare: { turn in try prepare(turn) { try kind.open(at: turn.directory, .buffered) } },
      measure: { turn in
        let entries = sets(turn).entries
        var opened: (any Peer)?
        var isThere = false
        let measurement = try Measurement.blocking(1) {
          let peer = try kind.open(at: turn.directory, .buffered)
          isThere = try peer.holds(entries, entries.count / 2)
          opened = peer
        }
        opened?.close()
        try expect(isThere, "the value is read")
        return measurement.adding("time", "ms", measurement.cost.seconds * 1_000)
      })
  }

  private static var scannedLevelDB: Contestant? {
    #if canImport(CDendroLevelDB)
      Contestant(
        "leveldb, open and scan",
        prepare: { turn in
          try prepare(turn) { try LevelDB(at: turn.directory, .buffered, .scanning) }
        },
        measure: { turn in
          let count = sets(turn).count
          var byteCount = 0
          let measurement = try Measurement.blocking(count) {
            let peer = try LevelDB(at: turn.directory, .buffered, .scanning)
            try peer.forEach { _, value in byteCount += value.count }
            peer.close()
          }
          try expect(byteCount == 20 * count, "every value is read")
          return measurement
        })
    #else
      nil
    #endif
  }

  /// Until the server answers; it loads its file before.
  private static var loadedRedis: Contestant? {
    #if canImport(CDendroRedis)
      Contestant(
        "redis, snapshot loaded",
        prepare: { turn in
          try FileManager.default.createDirectory(
            at: turn.directory, withIntermediateDirectories: true)
          let server = try RedisServer(at: turn.directory, .snapshot)
          defer { server.stop() }
          let connection = try server.connect()
          let entries = sets(turn).entries
          for index in 0..<entries.count {
            try connection.append(RedisWord.set.bytes, entries.key(index), entries.value(index))
            try connection.drain(to: 999)
          }
          try connection.drain()
          try connection.command("SAVE")
        },
        measure: { turn in
          let count = sets(turn).count
          let meter = Cost.Meter()
          let server = try RedisServer(at: turn.directory, .snapshot)
          defer { server.stop() }
          let connection = try server.connect()
          var measurement = Measurement(count: count, cost: meter.stop())
          measurement.serverProcessorSeconds = try connection.serverProcessorSeconds()
          try expect(try connection.command("DBSIZE") == String(count), "every value is there")
          return measurement
        })
    #else
      nil
    #endif
  }
}
