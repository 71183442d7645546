import Dendro
import DendroTesting
import Foundation

/// The commits of the blog in Firebase's guides. Each writes a post at two paths, and counts a star for an
/// earlier post at both paths of that post.
struct BlogCommits: Sendable {
  private struct Post {
    let id: String
    let userID: String
    let author: String
    let title: String
    let body: String
    /// The index of the earlier post that gets a star in the same commit.
    let starred: Int

    var value: [String: String] { ["uid": userID, "author": author, "title": title, "body": body] }
  }

  private let posts: [Post]
  private var count: Int { posts.count - 1 }

  init(count: Int) {
    var generator = SeededRandomness(seed: 3)
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

  /// Writes all commits, then synchronizes once.
  func write(to database: Database) throws {
    let root = database.reference()
    for index in 0..<count { root.updateChildValues(update(index)) }
    try database.synchronize()
  }

  /// The post that the first commit stars. It must be written before.
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

private let alphabet = Array(
  "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)

extension RandomNumberGenerator {
  /// An identifier of random letters and digits. The user ids of Firebase have 28 of them.
  fileprivate mutating func identifier(_ byteCount: Int) -> String {
    let letters = alphabet[1...]
    return String(
      decoding: (0..<byteCount).map { _ in letters.randomElement(using: &self)! }, as: UTF8.self)
  }

  /// A push id for the given time.
  fileprivate mutating func pushID(milliseconds: Int64) -> String {
    let time = stride(from: Int64(42), through: 0, by: -6).map {
      alphabet[Int(milliseconds >> $0) & 63]
    }
    return String(decoding: time + identifier(12).utf8, as: UTF8.self)
  }
}
