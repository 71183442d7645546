import Dendro
import Foundation

extension Workload {
  static let space = Workload(
    "space", row: "W8",
    """
    Bytes: of the log of 4,000 sets that are commits of their own, in order and at random, of 400,000 sets that go to \
    the disk in groups, of a checkpoint of them, of memory; and of the files of peers.
    """,
    [
      Comparison("single commits", "sets", [single { PostSets(count: $0) }]),
      Comparison("single commits, random fields", "sets", [single { PostSets.random(count: $0) }]),
      Comparison("400,000 leaves", "sets", [group, peer(.levelDB), peer(.lmdb), peer(.sqlite)]),
    ])

  private static func single(_ make: @escaping @Sendable (Int) -> PostSets) -> Contestant {
    Contestant("dendro") { turn in
      let sets = make(turn.scaled(4_000))
      return try await turn.withDatabase(.everyCommit) { database in
        let root = database.reference()
        var measurement = try await Measurement.awaiting(sets.count) {
          for index in 0..<sets.count {
            try await root.child(sets.paths[index]).setValue(sets.values[index])
          }
        }
        let statistics = database.statistics
        try expect(statistics.synchronizeCount >= sets.count, "each is a commit of its own")
        measurement.add("log", "bytes a set", Double(statistics.logByteCount) / Double(sets.count))
        return measurement
      }
    }
  }

  private static let group = Contestant("dendro") { turn in
    let sets = PostSets(count: turn.scaled(400_000))
    let count = Double(sets.count)
    let before = residentByteCount()
    return try await turn.withDatabase { database in
      var measurement = try Measurement.blocking(sets.count) { try sets.write(to: database) }
      measurement.add("memory", "bytes a leaf", Double(residentByteCount() - before) / count)
      measurement.add("log", "bytes a leaf", Double(database.statistics.logByteCount) / count)
      try await database.checkpoint()
      let statistics = database.statistics
      measurement.add("checkpoint", "bytes a leaf", Double(statistics.checkpointByteCount) / count)
      measurement.add(
        "files after a checkpoint", "bytes a leaf",
        Double(try byteCount(ofFilesIn: turn.directory)) / count)
      try sets.expectAll(in: database)
      return measurement
    }
  }

  private static func peer(_ kind: PeerKind) -> Contestant? {
    .peer(kind, for: .space) { turn, peer in
      let sets = PostSets(count: turn.scaled(400_000))
      let entries = sets.entries
      for start in stride(from: 0, to: entries.count, by: 1_000) {
        try peer.batch { put in
          for index in start..<min(entries.count, start + 1_000) {
            try put(entries.key(index), entries.value(index))
          }
        }
      }
      try peer.synchronize()
      try sets.expectSome(in: peer, entries)
      return Measurement().adding(
        "files", "bytes a leaf",
        Double(try byteCount(ofFilesIn: turn.directory)) / Double(sets.count))
    }
  }
}
