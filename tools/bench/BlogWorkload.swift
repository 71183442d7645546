import Dendro
import Foundation

extension Workload {
  static let blog = Workload(
    name: "blog",
    sentence:
      """
      200,000 commits: each writes a post of about 200 bytes at two paths, and increments the stars of an \
      earlier post at two paths.
      """
  ) { session in
    let count = session.scaled(200_000)
    var buffered: [Double] = []
    var durable: [Double] = []
    var replay: [Double] = []
    var onDisk: [Double] = []
    var raw: [Double] = []
    // The durable commits are fewer, since each round waits for the disk. They come from 64 tasks, as on a
    // server with many clients.
    let durableCount = session.scaled(40_000)
    let writerCount = 64
    let commits = BlogCommits(count: count)

    for _ in 0..<session.rounds {
      try await session.withDirectory { url in
        let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
        let root = database.reference()
        try await root.child(commits.firstPost.path).setValue(commits.firstPost.value)
        buffered.append(
          Double(count)
            / (try await seconds {
              try commits.write(to: database)
            }))
        let statistics = database.statistics
        try expect(statistics.lastDurableWrite == UInt64(count) + 1, "every commit is durable")
        raw.append(Double(statistics.rawByteCount) / Double(count))
        try await database.close()
        onDisk.append(Double(try byteCount(ofFilesIn: url)) / Double(count))

        let start = ContinuousClock.now
        let reopened = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
        replay.append((ContinuousClock.now - start) / .seconds(1))
        let posts = try await reopened.reference(withPath: "posts").getData()
        try expect(posts.childrenCount == count + 1, "every post is back")
        try await reopened.close()
      }
      try await session.withDirectory { url in
        let database = try await Database.open(at: url, options: .withoutCheckpoints(.everyCommit))
        let root = database.reference()
        try await root.child(commits.firstPost.path).setValue(commits.firstPost.value)
        durable.append(
          Double(durableCount)
            / (try await seconds {
              try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<writerCount {
                  group.addTask {
                    for index in stride(from: writer, to: durableCount, by: writerCount) {
                      try await root.updateChildValues(commits.update(index))
                    }
                  }
                }
                try await group.waitForAll()
              }
            }))
        try await database.close()
      }
    }
    session.record(Figure("blog", "commits buffered", "commits a second", buffered))
    session.record(
      Figure("blog", "commits durable, \(writerCount) tasks", "commits a second", durable))
    session.record(Figure("blog", "files", "bytes a commit", onDisk))
    session.record(Figure("blog", "encoded, before compression", "bytes a commit", raw))
    session.record(Figure("blog", "replay of \(count) commits", "seconds", replay))
  }
}

/// The sum of the lengths of all files in a directory.
func byteCount(ofFilesIn url: URL) throws -> Int {
  try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: [.fileSizeKey])
    .reduce(0) { $0 + (try $1.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0) }
}
