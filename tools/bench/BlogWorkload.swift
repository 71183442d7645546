import Dendro
import Foundation

extension Workload {
  static let blog = Workload(
    name: "blog",
    sentence:
      "200,000 commits: a post of about 200 bytes to two places, a star to an earlier one in two places."
  ) { session in
    let count = session.scaled(200_000)
    var buffered: [Double] = []
    var durable: [Double] = []
    var replay: [Double] = []
    var onDisk: [Double] = []
    var raw: [Double] = []
    // Fewer, since each round waits for the disk; from 64 tasks, since that is how a server comes.
    let durableCount = session.scaled(40_000)
    let writerCount = 64
    let commits = BlogCommits(count: count)

    for _ in 0..<session.rounds {
      try await session.withDirectory { url in
        let database = try await Database.open(at: url, options: .withoutCheckpoints(.none))
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
        let reopened = try await Database.open(at: url, options: .withoutCheckpoints(.none))
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

/// The commits of the blog of Firebase's guides: a post fanned out to two places, and a star for an
/// earlier post, counted in both.
private struct BlogCommits: Sendable {
  private struct Post {
    let id: String
    let userID: String
    let author: String
    let title: String
    let body: String
    /// The earlier post that gets a star in the same commit.
    let starred: Int

    var value: [String: String] { ["uid": userID, "author": author, "title": title, "body": body] }
  }

  private let posts: [Post]
  private var count: Int { posts.count - 1 }

  init(count: Int) {
    var generator = SeededGenerator(seed: 3)
    let userCount = max(1, count / 50)
    let users = (0..<userCount).map { _ in
      (id: generator.identifier(28), name: generator.text(14))
    }
    posts = (0...count).map { index in
      let user = users[Int.random(in: 0..<userCount, using: &generator)]
      return Post(
        id: generator.pushID(milliseconds: 1_700_000_000_000 + Int64(index) * 7), userID: user.id,
        author: user.name, title: generator.text(32), body: generator.text(120),
        starred: Int.random(in: max(0, index - 1000)...max(0, index - 1), using: &generator))
    }
  }

  /// All commits, and one synchronize.
  func write(to database: Database) throws {
    let root = database.reference()
    for index in 0..<count { root.updateChildValues(update(index)) }
    try database.synchronize()
  }

  /// What the first commit stars: written before.
  var firstPost: (path: String, value: [String: String]) {
    ("posts/\(posts[0].id)", posts[0].value)
  }

  func update(_ index: Int) -> [AnyHashable: Any] {
    let post = posts[index + 1]
    let starred = posts[post.starred]
    let value = post.value
    var update: [AnyHashable: Any] = [
      "posts/\(post.id)": value,
      "user-posts/\(post.userID)/\(post.id)": value,
    ]
    update["posts/\(starred.id)/starCount"] = ServerValue.increment(1)
    update["user-posts/\(starred.userID)/\(starred.id)/starCount"] = ServerValue.increment(1)
    return update
  }
}

extension SeededGenerator {
  private static let alphabet = Array(
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)

  /// As long as the ids that Firebase gives to users.
  fileprivate mutating func identifier(_ byteCount: Int) -> String {
    let letters = Self.alphabet[1...]
    return String(
      decoding: (0..<byteCount).map { _ in letters.randomElement(using: &self)! }, as: UTF8.self)
  }

  /// A push id of that moment.
  fileprivate mutating func pushID(milliseconds: Int64) -> String {
    let time = stride(from: Int64(42), through: 0, by: -6).map {
      Self.alphabet[Int(milliseconds >> $0) & 63]
    }
    return String(decoding: time + identifier(12).utf8, as: UTF8.self)
  }
}

/// Bytes that the files of a directory hold, as their lengths say.
func byteCount(ofFilesIn url: URL) throws -> Int {
  try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: [.fileSizeKey])
    .reduce(0) { $0 + (try $1.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0) }
}
