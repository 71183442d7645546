import Dendro
import DendroPlatform
import DendroTesting
import Foundation

extension Workload {
  static let reopen = Workload(
    "reopen", row: "W5",
    """
    Opening 400,000 leaves from the log alone, written singly and in updates of 1,000; and 1 million leaves \
    after a kill under steady writes, with the default options.
    """,
    [
      Comparison(
        "log, written singly", "writes",
        [
          dendroLog { try $0.write(to: $1) },
          levelDB { peer, entries in
            for index in 0..<entries.count {
              try peer.put(entries.key(index), entries.value(index))
            }
          },
        ]),
      Comparison(
        "log, written in updates of 1,000", "writes",
        [
          dendroLog { sets, database in
            let root = database.reference()
            for update in sets.updates(of: 1_000) { root.updateChildValues(update) }
            try database.synchronize()
          },
          levelDB { peer, entries in
            for start in stride(from: 0, to: entries.count, by: 1_000) {
              try peer.batch { put in
                for index in start..<min(entries.count, start + 1_000) {
                  try put(entries.key(index), entries.value(index))
                }
              }
            }
          },
        ]),
      Comparison("after a kill, 1 million leaves", "openings", [killed]),
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

  private static func levelDB(
    _ write: @escaping @Sendable (any Peer, Entries) throws -> Void
  ) -> Contestant? {
    guard PeerKind.levelDB.isBuilt else { return nil }
    return Contestant(
      "leveldb",
      prepare: { turn in
        let peer = try PeerKind.levelDB.open(at: turn.directory, .buffered)
        try write(peer, PostSets(count: turn.scaled(400_000)).entries)
        try peer.synchronize()
        peer.close()
      },
      measure: { turn in
        let sets = PostSets(count: turn.scaled(400_000))
        let entries = sets.entries
        var opened: (any Peer)?
        let measurement = try Measurement.blocking(sets.count) {
          opened = try PeerKind.levelDB.open(at: turn.directory, .buffered)
        }
        guard let peer = opened else { throw WrongResult(claim: "it opens") }
        defer { peer.close() }
        try sets.expectSome(in: peer, entries)
        return measurement
      })
  }

  // MARK: After a kill

  /// The process is killed when so much log was written after the last checkpoint as a database of this size
  /// may have: it overwrites leaves at random until a checkpoint is near.
  private static let killed = Contestant(
    "dendro", prepare: { try await writeAndKill($0) }, isKilledAfterPreparing: true,
    measure: { turn in
      let leafCount = turn.scaled(1_000_000)
      var opened: Database?
      var measurement = try Measurement.blocking(1) {
        opened = try Database.open(at: turn.directory.path)
      }
      guard let database = opened else { throw WrongResult(claim: "it opens") }
      let postCount = try database.read { try $0.childrenCount(at: "posts") }
      try expect(postCount == leafCount / PostSets.fields.count, "every post is back")
      measurement.add("time", "s", measurement.cost.seconds)
      measurement.add("replayed", "bytes", Double(database.recoveryReport.replayedByteCount))
      try await database.close()
      return measurement
    })

  private static func writeAndKill(_ turn: Turn) async throws {
    let sets = PostSets(count: turn.scaled(1_000_000))
    let database = try await Database.open(
      at: turn.directory, options: DatabaseOptions(durability: .onRequest))
    overwrite(sets, in: database, count: turn.scaled(3_000_000))
    kill(getpid(), SIGKILL)
  }

  private static func overwrite(_ sets: PostSets, in database: Database, count: Int) {
    let root = database.reference()
    for update in sets.updates(of: 1_000) { root.updateChildValues(update) }
    var generator = SeededRandomness(seed: 12)
    for _ in 0..<count {
      let index = Int.random(in: 0..<sets.count, using: &generator)
      root.child(sets.paths[index]).setValue(sets.values[(index + 1) % sets.count])
    }
    try? database.synchronize()
  }
}
