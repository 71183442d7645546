import Dendro
import Foundation

extension Workload {
  static let blog = Workload(
    "blog",
    """
    The commits of fan-out, of which there are 200,000: buffered, durable from 64 tasks, and replayed.
    """,
    [
      Comparison("buffered", "commits", [bufferedCommits]),
      Comparison("durable, 64 tasks", "commits", [durableCommits]),
      Comparison("replay", "commits", [replayedCommits]),
    ])

  private static let bufferedCommits = Contestant("dendro") { turn in
    let commits = BlogCommits(count: turn.scaled(200_000))
    let count = Double(commits.count)
    var measurement = try await turn.withDatabase { database in
      try commits.writeFirstPost(to: database)
      var measurement = try Measurement.blocking(commits.count) { try commits.write(to: database) }
      measurement.add(
        "encoded, before compression", "bytes a commit",
        Double(database.statistics.rawByteCount) / count)
      try commits.expectAll(in: database)
      return measurement
    }
    measurement.add(
      "files", "bytes a commit", Double(try byteCount(ofFilesIn: turn.directory)) / count)
    return measurement
  }

  /// Fewer, since they wait for the disk. They come from 64 tasks, as on a server with many clients.
  private static let durableCommits = Contestant("dendro") { turn in
    let commits = BlogCommits(count: turn.scaled(40_000))
    return try await turn.withDatabase(.everyCommit) { database in
      let root = database.reference()
      try commits.writeFirstPost(to: database)
      let latencies = Latencies(commits.count)
      var measurement = try await Measurement.awaiting(commits.count) {
        try await latencies.inTasks(64) { index in
          try await root.updateChildValues(commits.update(index))
        }
      }
      measurement.addLatencies(latencies.all)
      return measurement
    }
  }

  private static let replayedCommits = Contestant(
    "dendro",
    prepare: { turn in
      let commits = BlogCommits(count: turn.scaled(200_000))
      try await turn.withDatabase { database in
        try commits.writeFirstPost(to: database)
        try commits.write(to: database)
      }
    },
    measure: { turn in
      let commits = BlogCommits(count: turn.scaled(200_000))
      var opened: Database?
      let measurement = try Measurement.blocking(commits.count) {
        opened = try Database.open(
          at: turn.directory.path, options: .withoutCheckpoints(.onRequest))
      }
      guard let database = opened else { throw WrongResult(claim: "it opens") }
      try commits.expectAll(in: database)
      try await database.close()
      return measurement.adding("time", "s", measurement.cost.seconds)
    })
}

extension BlogCommits {
  /// Writes all commits, then synchronizes once.
  fileprivate func write(to database: Database) throws {
    let root = database.reference()
    for index in 0..<count { root.updateChildValues(update(index)) }
    try database.synchronize()
  }
}
