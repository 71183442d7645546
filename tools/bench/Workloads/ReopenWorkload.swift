import Dendro
import DendroPlatform
import DendroTesting
import Foundation

extension Workload {
  static let reopen = Workload(
    "reopen", row: "W5",
    """
    Opening 400,000 leaves from the log alone, written singly and in updates of 1,000, beside LevelDB with and without \
    reuse_logs; and 1 million leaves after a kill under steady writes, with the default options.
    """,
    [
      Comparison(
        "log, written singly", "writes",
        [
          dendroLog { try $0.write(to: $1) }, levelDB(.none, writeSingly),
          levelDB(.reusing, writeSingly),
        ]),
      Comparison(
        "log, written in updates of 1,000", "writes",
        [
          dendroLog { sets, database in
            let root = database.reference()
            for update in sets.updates(of: 1_000) { root.updateChildValues(update) }
            try database.synchronize()
          },
          levelDB(.none, writeBatches), levelDB(.reusing, writeBatches),
        ]),
      Comparison("after a kill, 1 million leaves", "openings", [killed(nil)]),
      Comparison(
        "after a kill, by checkpointFactor", "openings", [4, 2, 1, 0.5].map { killed($0) }),
    ])

  private static func dendroLog(
    _ write: @escaping @Sendable (PostSets, Database) throws -> Void
  ) -> Contestant {
    Contestant(
      "dendro",
      prepare: { turn in
        try await turn.withDatabase { try write(PostSets(count: turn.scaled(400_000)), $0) }
      },
      measure: { turn in
        let sets = PostSets(count: turn.scaled(400_000))
        var opened: Database?
        let measurement = try Measurement.blocking(sets.count) {
          opened = try Database.open(
            at: turn.directory.path, options: .withoutCheckpoints(.onRequest))
        }
        guard let database = opened else { throw WrongResult(claim: "it opens") }
        try expect(database.recoveryReport.checkpointedWrite == nil, "the log alone was read")
        try sets.expectAll(in: database)
        try await database.close()
        return measurement
      })
  }

  // MARK: LevelDB

  private static let writeSingly: @Sendable (any Peer, Entries) throws -> Void = { peer, entries in
    for index in 0..<entries.count { try peer.put(entries.key(index), entries.value(index)) }
  }

  private static let writeBatches: @Sendable (any Peer, Entries) throws -> Void = { peer, entries in
    for start in stride(from: 0, to: entries.count, by: 1_000) {
      try peer.batch { put in
        for index in start..<min(entries.count, start + 1_000) {
          try put(entries.key(index), entries.value(index))
        }
      }
    }
  }

  /// What LevelDB does with its log once it has replayed it.
  private enum LogUse: Sendable {
    /// It writes a table, and begins a log.
    case none
    /// It goes on with it.
    case reusing
  }

  private static func levelDB(
    _ use: LogUse, _ write: @escaping @Sendable (any Peer, Entries) throws -> Void
  ) -> Contestant? {
    #if canImport(CDendroLevelDB)
      Contestant(
        PeerKind.levelDB.name(use == .reusing ? "reuse_logs" : nil),
        prepare: { turn in
          let peer = try PeerKind.levelDB.open(at: turn.directory, .buffered)
          try write(peer, PostSets(count: turn.scaled(400_000)).entries)
          try peer.synchronize()
          peer.close()
        },
        measure: { turn in
          let sets = PostSets(count: turn.scaled(400_000))
          let entries = sets.entries
          var opened: LevelDB?
          let measurement = try Measurement.blocking(sets.count) {
            opened = try LevelDB(
              at: turn.directory, .buffered, use == .reusing ? .replaying : .none)
          }
          guard let peer = opened else { throw WrongResult(claim: "it opens") }
          defer { peer.close() }
          try sets.expectSome(in: peer, entries)
          let files = try FileManager.default.contentsOfDirectory(atPath: turn.directory.path)
          try expect(
            files.contains { $0.hasSuffix(".ldb") } == (use == .none),
            "it has made a table, or has gone on with its log")
          return measurement
        })
    #else
      nil
    #endif
  }

  // MARK: After a kill

  /// The process overwrites leaves at random, and is killed when the log since the last checkpoint is nearly as
  /// long as the options let it grow.
  ///
  /// - Parameter factor: nil for the default.
  private static func killed(_ factor: Double?) -> Contestant {
    Contestant(
      factor.map { "factor \($0)" } ?? "dendro",
      prepare: { try await writeAndKill($0, options(factor)) }, isKilledAfterPreparing: true,
      measure: { try await reopen($0) })
  }

  private static func options(_ factor: Double?) -> DatabaseOptions {
    var options = DatabaseOptions(durability: .onRequest)
    if let factor { options.checkpointFactor = factor }
    return options
  }

  private static func reopen(_ turn: Turn) async throws -> Measurement {
    let leafCount = turn.scaled(1_000_000)
    var opened: Database?
    var measurement = try Measurement.blocking(1) {
      opened = try Database.open(at: turn.directory.path)
    }
    guard let database = opened else { throw WrongResult(claim: "it opens") }
    let postCount = try database.read { try $0.childrenCount(at: "posts") }
    try expect(postCount == leafCount / PostSets.fields.count, "every post is back")
    measurement.add("time", "s", measurement.cost.seconds)
    measurement.add("replayed", "writes", Double(database.recoveryReport.replayedWriteCount))
    measurement.add(
      "directory", "bytes a leaf",
      Double(try byteCount(ofFilesIn: turn.directory)) / Double(leafCount))
    let figures = try String(contentsOf: figuresFile(turn), encoding: .utf8)
    measurement.add("written", "bytes a byte of log", Double(figures) ?? 0)
    try await database.close()
    return measurement
  }

  /// What the killed process leaves beside the database.
  private static func figuresFile(_ turn: Turn) -> URL {
    turn.directory.deletingLastPathComponent().appendingPathComponent(
      turn.directory.lastPathComponent + ".figures")
  }

  private static func writeAndKill(_ turn: Turn, _ options: DatabaseOptions) async throws {
    let sets = PostSets(count: turn.scaled(1_000_000))
    let database = try await Database.open(at: turn.directory, options: options)
    try sets.write(to: database)
    try await database.checkpoint()
    try overwrite(sets, in: database, options, figuresFile(turn), count: turn.scaled(6_000_000))
    kill(getpid(), SIGKILL)
  }

  private static func overwrite(
    _ sets: PostSets, in database: Database, _ options: DatabaseOptions, _ figures: URL, count: Int
  ) throws {
    let root = database.reference()
    let before = database.statistics
    var checkpointByteCount: UInt64 = 0
    var generator = SeededRandomness(seed: 12)
    var done = 0
    var last = before
    while true {
      for _ in 0..<1_000 {
        let index = Int.random(in: 0..<sets.count, using: &generator)
        root.child(sets.paths[index]).setValue(sets.values[(index + done) % sets.count])
      }
      done += 1_000
      let now = database.statistics
      if now.checkpointCount > last.checkpointCount {
        checkpointByteCount += now.checkpointByteCount
      }
      last = now
      let limit = max(
        Double(options.checkpointByteMin),
        options.checkpointFactor * Double(now.checkpointByteCount))
      if done >= count, Double(now.logBytesSinceCheckpoint) > 0.95 * limit {
        break
      }
    }
    try database.synchronize()
    let logByteCount = database.statistics.logByteCount - before.logByteCount
    let written = 1 + Double(checkpointByteCount) / Double(logByteCount)
    try String(written).write(to: figures, atomically: true, encoding: .utf8)
  }
}
