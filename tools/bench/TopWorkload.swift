import Dendro
import DendroTesting
import Synchronization

extension Workload {
  static let top = Workload(
    name: "top",
    sentence: """
      The 100 posts with the most stars of 100,000, after every 10 changes of stars: read with
      getData, and kept up to date by a listener.
      """
  ) { session in
    let posts = StarredPosts(count: session.scaled(100_000))
    let roundCount = session.scaled(2_000)
    let asked = Contestant(name: "asked for with getData", count: roundCount) {
      try await posts.withDatabase(session) { database, changes in
        let top = database.reference(withPath: "posts")
          .queryOrdered(byChild: "starCount").queryLimited(toLast: 100)
        return try await measured {
          for _ in 0..<roundCount {
            changes.make(10)
            var stars = 0
            for post in try await top.getData() { stars += post["starCount"].int ?? 0 }
            Sink.take(stars)
          }
        }.1
      }
    }
    let kept = Contestant(name: "kept by a listener", count: roundCount) {
      try await posts.withDatabase(session) { database, changes in
        let list = database.reference(withPath: "posts")
        let top = list.queryOrdered(byChild: "starCount").queryLimited(toLast: 100)
        let shown = Atomic<Int>(0)
        top.observe(.value) { snapshot in
          shown.store(Int(snapshot.childrenCount), ordering: .relaxed)
        }
        await eventsDelivered(of: list)
        let (_, cost) = await measured {
          for _ in 0..<roundCount {
            changes.make(10)
            await eventsDelivered(of: list)
          }
        }
        try expect(shown.load(ordering: .relaxed) == min(100, posts.count), "all are shown")
        return cost
      }
    }
    try await session.compare("top", "round", [asked, kept])
  }
}

/// Returns when all queued events have been delivered, since completions come after them.
private func eventsDelivered(of list: DatabaseReference) async {
  await withCheckedContinuation { continuation in
    list.child("none").getData { _, _ in continuation.resume() }
  }
}

/// Posts with a title, an author and a number of stars.
private struct StarredPosts {
  let count: Int

  func withDatabase(
    _ session: Session, _ body: (Database, StarChanges) async throws -> Cost
  ) async throws -> Cost {
    try await session.withDirectory { url in
      let database = try await Database.open(at: url, options: .withoutCheckpoints(.onRequest))
      var generator = SeededRandomness(seed: 7)
      var content: [String: Any] = [:]
      for number in 0..<count {
        content["post-\(1_000_000 + number)"] = [
          "title": generator.text(40), "author": generator.text(12),
          "starCount": Int.random(in: 0..<10_000, using: &generator),
        ]
      }
      try await database.reference(withPath: "posts").setValue(content)
      let cost = try await body(database, StarChanges(database, count))
      try await database.close()
      return cost
    }
  }
}

/// One more star for posts at random.
private final class StarChanges {
  private let posts: DatabaseReference
  private let count: Int
  private var generator = SeededRandomness(seed: 8)

  init(_ database: Database, _ count: Int) {
    posts = database.reference(withPath: "posts")
    self.count = count
  }

  func make(_ changeCount: Int) {
    for _ in 0..<changeCount {
      let number = Int.random(in: 0..<count, using: &generator)
      posts.child("post-\(1_000_000 + number)/starCount").setValue(
        Int.random(in: 0..<10_000, using: &generator))
    }
  }
}
