import Dendro
import Foundation

/// Compares a reopened blog with its writers' record.
///
/// An acknowledged write must be there; one that was under way is there as a whole or not at all; nothing
/// else is there.
struct BlogJudge {
  private let record: BlogRecord
  private(set) var checks = 0
  private(set) var problems: [String] = []
  private var postCount = 0
  private var starCount = 0

  init(record: BlogRecord) { self.record = record }

  var summary: String {
    "\(Format.count(postCount, "post")) with \(Format.count(starCount, "star")), each in both places"
  }

  mutating func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    checks += 1
    if !holds { problems.append("not so: \(what())") }
  }

  mutating func compare(_ root: DataSnapshot) {
    let posts = root.childSnapshot(forPath: "posts")
    let userPosts = root.childSnapshot(forPath: "user-posts")
    for (key, expected) in record.posts {
      compare(
        posts.childSnapshot(forPath: key), with: expected, key: key,
        copy: userPosts.childSnapshot(forPath: "\(expected.post.author)/\(key)"))
    }
    for post in posts {
      check(record.posts[post.key] != nil, "post \(post.key) is in the record")
    }
    for user in userPosts {
      for post in user {
        check(
          record.posts[post.key]?.post.author == user.key,
          "post \(post.key) of \(user.key) was written by them")
      }
    }
    for (user, range) in record.counts {
      let found = root.childSnapshot(forPath: "users/\(user)/posts").value as? Int ?? 0
      check(
        found >= range.acknowledged && found <= range.begun,
        "\(user) counts \(range.acknowledged) to \(range.begun) posts (found \(found))")
    }
    let views = root.childSnapshot(forPath: "stats/views").value as? Int ?? 0
    let range = record.views
    check(
      views >= range.acknowledged && views <= range.begun,
      "there were \(range.acknowledged) to \(range.begun) views (found \(views))")
    let known: Set = ["iso-codes", "posts", "user-posts", "users", "stats"]
    for child in root {
      check(known.contains(child.key), "/\(child.key) is a place that the demonstration writes")
    }
  }

  /// The ranked list must be what sorting all posts gives.
  mutating func compare(_ ranked: DataSnapshot, with posts: DataSnapshot) {
    let sorted = posts.map { post in
      (stars: post.childSnapshot(forPath: "starCount").value as? Int ?? -1, key: post.key)
    }
    .sorted { $0 < $1 }
    check(
      ranked.map(\.key) == sorted.suffix(TopPosts.count).map(\.key),
      "the query finds the posts with most stars")
  }

  private mutating func compare(
    _ post: DataSnapshot, with expected: BlogRecord.Post, key: String, copy: DataSnapshot
  ) {
    let texts = (try? ComparableText.make(post.value), try? ComparableText.make(copy.value))
    check(texts.0 != nil && texts.0 == texts.1, "both places of post \(key) agree")
    let mustExist = expected.isAcknowledged && expected.removal == .none
    let mayExist = expected.removal != .acknowledged
    check(post.exists() || !mustExist, "acknowledged post \(key) is there")
    check(!post.exists() || mayExist, "removed post \(key) is gone")
    guard post.exists() else { return }
    postCount += 1
    check(
      post.childSnapshot(forPath: "title").value as? String == expected.post.title
        && post.childSnapshot(forPath: "body").value as? String == expected.post.body
        && post.childSnapshot(forPath: "uid").value as? String == expected.post.author,
      "post \(key) has the content that was written")
    let stars = Set(post.childSnapshot(forPath: "stars").map(\.key))
    starCount += stars.count
    for (user, isAcknowledged) in expected.stars where isAcknowledged {
      check(stars.contains(user), "the acknowledged star of \(user) on \(key) is there")
    }
    check(stars.isSubset(of: expected.stars.keys), "every star on \(key) is in the record")
    check(
      post.childSnapshot(forPath: "starCount").value as? Int == stars.count,
      "post \(key) counts its \(stars.count) stars")
  }
}
