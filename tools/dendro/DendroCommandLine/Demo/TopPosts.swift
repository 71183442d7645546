import Dendro

/// The posts with most stars, as the listeners of one query keep them, the best one last.
struct TopPosts {
  struct Entry {
    var key: String
    var stars: Int
  }

  static let count = 3

  static func query(_ posts: DatabaseReference) -> DatabaseQuery {
    posts.queryOrdered(byChild: "starCount").queryLimited(toLast: UInt(count))
  }

  private(set) var entries: [Entry] = []
  private(set) var entered = 0
  private(set) var left = 0
  private(set) var moved = 0
  /// The posts in the list according to the events alone.
  private var keys: Set<String> = []

  init() {}

  mutating func enter(_ post: DataSnapshot) {
    entered += 1
    keys.insert(post.key)
  }

  mutating func leave(_ post: DataSnapshot) {
    left += 1
    keys.remove(post.key)
  }

  mutating func move() { moved += 1 }

  /// Takes the whole list, which follows the events of single posts.
  ///
  /// - Returns: what is wrong; nil if nothing is.
  mutating func take(_ posts: DataSnapshot) -> String? {
    entries = posts.map { post in
      Entry(key: post.key, stars: post.childSnapshot(forPath: "starCount").value as? Int ?? -1)
    }
    guard entries.count <= Self.count else {
      return "the ranked list holds \(entries.count) posts instead of \(Self.count)"
    }
    let list = entries.map { "\($0.key):\($0.stars)" }.joined(separator: " ")
    if zip(entries, entries.dropFirst()).contains(where: { $0.stars > $1.stars }) {
      return "the ranked list is out of order: \(list)"
    }
    if keys != Set(entries.map(\.key)) {
      return "the events leave \(keys.sorted()) in the ranked list: \(list)"
    }
    return nil
  }

  // MARK: The line of the record

  var line: String {
    (["t \(entered) \(left) \(moved)"] + entries.map { "\($0.key):\($0.stars)" })
      .joined(separator: " ")
  }

  /// From the words of such a line after the first; nil if they are none.
  init?(_ words: ArraySlice<Substring>) {
    let numbers = words.prefix(3).compactMap { Int($0) }
    guard numbers.count == 3 else { return nil }
    (entered, left, moved) = (numbers[0], numbers[1], numbers[2])
    for word in words.dropFirst(3) {
      let parts = word.split(separator: ":")
      guard parts.count == 2, let stars = Int(parts[1]) else { return nil }
      entries.append(Entry(key: String(parts[0]), stars: stars))
    }
  }
}
