import Dendro
import Foundation

extension Workload {
  static let checkpoint = Workload(
    name: "checkpoint",
    sentence: "A checkpoint of 500,000 leaves written, and opened again."
  ) { session in
    let sets = PostSets(count: session.scaled(500_000))
    var writing: [Double] = []
    var loading: [Double] = []
    var bytes: [Double] = []
    for _ in 0..<session.rounds {
      try await session.withDirectory { url in
        let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
        try sets.write(to: database)
        writing.append(
          Double(sets.count) / (try await seconds { try await database.checkpoint() }))
        bytes.append(Double(database.statistics.checkpointByteCount) / Double(sets.count))
        try await database.close()

        let start = ContinuousClock.now
        let reopened = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
        loading.append(Double(sets.count) / ((ContinuousClock.now - start) / .seconds(1)))
        let report = reopened.recoveryReport
        try expect(
          report.checkpointedWrite == UInt64(sets.count) && report.replayedWriteCount == 0,
          "the checkpoint alone was read")
        let posts = try await reopened.reference(withPath: "posts").getData()
        try expect(posts.childrenCount == sets.postCount, "every post is back")
        try await reopened.close()
      }
    }
    session.record(Figure("checkpoint", "writing", "leaves a second", writing))
    session.record(Figure("checkpoint", "opening", "leaves a second", loading))
    session.record(Figure("checkpoint", "file", "bytes a leaf", bytes))
  }
}
