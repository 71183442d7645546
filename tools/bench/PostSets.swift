import DendroTree

/// Small sets as an app makes them: five fields of about 20 bytes at `posts/<push id>/<field>`, post
/// after post.
struct PostSets {
  static let fields = ["uid", "author", "title", "body", "link"]

  /// `posts/<push id>/<field>`.
  let paths: [String]
  let values: [String]
  let postCount: Int

  init(count: Int) {
    var generator = SeededGenerator(seed: 1)
    var ids = PushIDGenerator()
    var paths: [String] = []
    var values: [String] = []
    paths.reserveCapacity(count)
    values.reserveCapacity(count)
    var id = ""
    for index in 0..<count {
      let field = index % Self.fields.count
      if field == 0 {
        // A post each 3 ms from a fixed moment on.
        let time = 1_700_000_000_000 + Int64(index / Self.fields.count) * 3
        id = ids.next(now: time, random: { generator.next() })
      }
      paths.append("posts/\(id)/\(Self.fields[field])")
      values.append(generator.text(20))
    }
    self.paths = paths
    self.values = values
    postCount = (count + Self.fields.count - 1) / Self.fields.count
  }

  var count: Int { paths.count }
}
