import DendroTesting

/// Posts with a title, an author and a number of stars, which is changed again and again.
struct StarredPosts: Sendable {
  let ids: [String]
  /// Below the list.
  let starPaths: [String]
  let titles: [String]
  let authors: [String]
  let stars: [Int]

  init(count: Int) {
    var generator = SeededRandomness(seed: 7)
    ids = (0..<count).map { "post-\(1_000_000 + $0)" }
    starPaths = ids.map { "\($0)/starCount" }
    titles = ids.map { _ in generator.text(40) }
    authors = ids.map { _ in generator.text(12) }
    stars = ids.map { _ in Int.random(in: 0..<10_000, using: &generator) }
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
}
