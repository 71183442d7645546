import Dendro
import DendroTesting
import Foundation

/// The commits of the blog in Firebase's guides. Each writes a post at two paths, and counts a star for an
/// earlier post at both paths of that post.
struct BlogCommits: Sendable {
  struct Post: Sendable {
    let userID: String
    let author: String
    let title: String
    let body: String
    /// `posts/<id>` and `user-posts/<user id>/<id>`.
    let paths: [String]
    /// The index of the earlier post that gets a star in the same commit.
    let starred: Int

    var value: [String: String] { ["uid": userID, "author": author, "title": title, "body": body] }
    var typedValue: Database.Value {
      [
        "uid": .string(userID), "author": .string(author), "title": .string(title),
        "body": .string(body),
      ]
    }
    /// As an app would keep it under one key.
    var json: String {
      #"{"uid":"\#(userID)","author":"\#(author)","title":"\#(title)","body":"\#(body)"}"#
    }
    var counterPaths: [String] { paths.map { "\($0)/starCount" } }
  }

  /// The first one is there before the first commit.
  let posts: [Post]
  var count: Int { posts.count - 1 }

  init(count: Int) {
    var generator = SeededRandomness(seed: 3)
    let userCount = max(1, count / 50)
    let users = (0..<userCount).map { _ in
      (id: generator.identifier(28), name: generator.text(14))
    }
    posts = (0...count).map { index in
      let user = users[Int.random(in: 0..<userCount, using: &generator)]
      let id = generator.pushID(milliseconds: 1_700_000_000_000 + Int64(index) * 7)
      return Post(
        userID: user.id, author: user.name, title: generator.text(32), body: generator.text(120),
        paths: ["posts/\(id)", "user-posts/\(user.id)/\(id)"],
        starred: Int.random(in: max(0, index - 1000)...max(0, index - 1), using: &generator))
    }
  }

  /// Writes the post that the first commit stars.
  func writeFirstPost(to database: Database) throws {
    database.reference(withPath: posts[0].paths[0]).setValue(posts[0].value)
    try database.synchronize()
  }

  func update(_ index: Int) -> [AnyHashable: Any] {
    let post = posts[index + 1]
    return update(index, post.value)
  }

  /// With posts as `Database.Value`.
  func typedUpdate(_ index: Int) -> [AnyHashable: Any] {
    update(index, posts[index + 1].typedValue)
  }

  private func update(_ index: Int, _ value: Any) -> [AnyHashable: Any] {
    let post = posts[index + 1]
    let starred = posts[post.starred]
    var update: [AnyHashable: Any] = [post.paths[0]: value, post.paths[1]: value]
    for path in starred.counterPaths { update[path] = ServerValue.increment(1) }
    return update
  }

  /// Throws unless every commit shows in the database.
  func expectAll(in database: Database) throws {
    let (postCount, stars) = try database.read { view in
      var stars = 0
      for post in posts { stars += try view.int(at: post.counterPaths[0]) ?? 0 }
      return (try view.childrenCount(at: "posts"), stars)
    }
    try expect(postCount == count + 1 && stars == count, "every commit shows")
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
