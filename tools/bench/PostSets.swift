import DendroTesting
import DendroTree

/// Small sets like those of an app: five fields of 20 bytes for each post, at `posts/<push id>/<field>`.
struct PostSets {
  static let fields = ["uid", "author", "title", "body", "link"]

  /// `posts/<push id>/<field>`.
  let paths: [String]
  let values: [String]
  let postCount: Int

  init(count: Int) {
    var generator = SeededRandomness(seed: 1)
    var ids = PushIDGenerator()
    var paths: [String] = []
    var values: [String] = []
    paths.reserveCapacity(count)
    values.reserveCapacity(count)
    var id = ""
    for index in 0..<count {
      let field = index % Self.fields.count
      if field == 0 {
        // There is one post every 3 ms, beginning at a fixed time.
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
