import DendroTesting

/// Posts with a title, an author, a time and a number of stars, which is changed again and again.
struct StarredPosts: Sendable {
  let ids: [String]
  /// Below the list.
  let starPaths: [String]
  let titles: [String]
  let authors: [String]
  let stars: [Int]
  /// Milliseconds since 1970.
  let times: [Int]

  init(count: Int) {
    var generator = SeededRandomness(seed: 7)
    ids = (0..<count).map { "post-\(1_000_000 + $0)" }
    starPaths = ids.map { "\($0)/starCount" }
    titles = ids.map { _ in generator.text(40) }
    authors = ids.map { _ in generator.text(12) }
    stars = ids.map { _ in Int.random(in: 0..<10_000, using: &generator) }
    times = ids.indices.map { 1_700_000_000_000 + $0 * 997 }
  }

  var count: Int { ids.count }

  /// Post and new number of stars, for each change.
  func changes(_ count: Int) -> [(post: Int, stars: Int)] {
    var generator = SeededRandomness(seed: 8)
    return (0..<count).map { _ in
      (
        Int.random(in: ids.indices, using: &generator),
        Int.random(in: 0..<10_000, using: &generator)
      )
    }
  }

  /// The sum of the stars of the 100 posts with the most, after the changes.
  func topSum(after changes: [(post: Int, stars: Int)]) -> Int {
    var stars = stars
    for change in changes { stars[change.post] = change.stars }
    return stars.sorted().suffix(100).reduce(0, +)
  }

  /// What reading all fields of the 100 posts with the most stars gives, after the changes. Of posts with
  /// equal stars the later ones count.
  func topFields(after changes: [(post: Int, stars: Int)]) -> ReadFields {
    var stars = stars
    for change in changes { stars[change.post] = change.stars }
    var fields = ReadFields()
    for post in ids.indices.sorted(by: { (stars[$0], $0) < (stars[$1], $1) }).suffix(100) {
      fields.add(title: titles[post], author: authors[post], stars: stars[post], time: times[post])
    }
    return fields
  }
}

/// What was read of the fields of posts, added up, so that every field has to be there.
struct ReadFields: Equatable, Sendable {
  private var textLength = 0
  private var stars = 0
  private var time = 0

  mutating func add(title: String?, author: String?, stars: Int?, time: Int?) {
    textLength += (title?.utf8.count ?? 0) + (author?.utf8.count ?? 0)
    self.stars += stars ?? 0
    self.time += time ?? 0
  }
}
