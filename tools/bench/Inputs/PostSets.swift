import Dendro
import DendroTesting
import DendroTree

/// Small sets like those of an app: five fields of 20 bytes for each post, at `posts/<push id>/<field>`.
struct PostSets: Sendable {
  static let fields = ["uid", "author", "title", "body", "link"]

  /// `posts/<push id>/<field>`.
  let paths: [String]
  let values: [String]
  let postCount: Int

  init(count: Int, fields: [String] = PostSets.fields) {
    var generator = SeededRandomness(seed: 1)
    var ids = PushIDGenerator()
    var paths: [String] = []
    var values: [String] = []
    paths.reserveCapacity(count)
    values.reserveCapacity(count)
    var id = ""
    for index in 0..<count {
      let field = index % fields.count
      if field == 0 {
        // There is one post every 3 ms, beginning at a fixed time.
        let time = 1_700_000_000_000 + Int64(index / fields.count) * 3
        id = ids.next(now: time, random: { generator.next() })
      }
      paths.append("posts/\(id)/\(fields[field])")
      values.append(generator.text(20))
    }
    self.paths = paths
    self.values = values
    postCount = (count + fields.count - 1) / fields.count
  }

  /// A random field of a random post each, of 100,000 posts: path and value have 71 bytes.
  static func random(count: Int) -> PostSets {
    let posts = PostSets(count: 500_000)
    var generator = SeededRandomness(seed: 19)
    let paths = (0..<count).map { _ in posts.paths.randomElement(using: &generator) ?? "" }
    return PostSets(
      paths: paths, values: paths.map { generator.text(71 - $0.utf8.count) },
      postCount: posts.postCount)
  }

  private init(paths: [String], values: [String], postCount: Int) {
    self.paths = paths
    self.values = values
    self.postCount = postCount
  }

  var count: Int { paths.count }

  /// The sets as peers get them.
  var entries: Entries { Entries(keys: paths, values: values) }

  /// The sets as updates of the root, of the type that `updateChildValues` takes: a `[String: Any]` would be
  /// converted at each call.
  func updates(of pathCount: Int) -> [[AnyHashable: Any]] {
    stride(from: 0, to: count, by: pathCount).map { start in
      var update: [AnyHashable: Any] = [:]
      for index in start..<min(count, start + pathCount) { update[paths[index]] = values[index] }
      return update
    }
  }

  /// Writes all sets through the public API, then synchronizes once.
  func write(to database: Database) throws {
    let root = database.reference()
    for index in 0..<count { root.child(paths[index]).setValue(values[index]) }
    try database.synchronize()
  }

  /// Throws unless the database holds exactly these sets.
  func expectAll(in database: Database) throws {
    let differenceCount = try database.read { view in
      var count = try view.childrenCount(at: "posts") == postCount ? 0 : 1
      for index in paths.indices where try view.string(at: paths[index]) != values[index] {
        count += 1
      }
      return count
    }
    try expect(differenceCount == 0, "every set is there")
  }

  /// Throws unless the peer holds the last set and some others.
  func expectSome(in peer: any Peer, _ entries: Entries) throws {
    for index in [0, entries.count / 2, entries.count - 1] {
      try expect(try peer.holds(entries, index), "every set is there")
    }
  }
}
