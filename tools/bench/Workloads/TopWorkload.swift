import Dendro
import DendroTesting
import Foundation
import Synchronization

extension Workload {
  static let top = Workload(
    "top", row: "W7",
    """
    The 100 posts with the most stars of 100,000, after every 10 changes of stars, each atomic and logged: \
    read with getData, and kept up to date by a listener; the stars of each post alone, and all four fields.
    """,
    [
      Comparison("asked for", "rounds", [asked(readsAll: false), lmdb(readsAll: false)]),
      Comparison("asked for, all fields", "rounds", [asked(readsAll: true), lmdb(readsAll: true)]),
      Comparison("kept by a listener", "rounds", [kept(readsAll: false), lmdb(readsAll: false)]),
      Comparison(
        "kept by a listener, all fields", "rounds", [kept(readsAll: true), lmdb(readsAll: true)]),
    ])

  private static let changeCount = 10

  private static func asked(readsAll: Bool) -> Contestant {
    Contestant("dendro, getData") { turn in
      let posts = StarredPosts(count: turn.scaled(100_000))
      let changes = posts.changes(turn.scaled(4_000) * changeCount)
      return try await turn.withDatabase { database in
        try write(posts, to: database)
        let list = database.reference(withPath: "posts")
        let top = list.queryOrdered(byChild: "starCount").queryLimited(toLast: 100)
        // The order is kept from the second time on, as the index of the peer is there before it is measured.
        for _ in 0..<2 { _ = try await top.getData() }
        var shown = Shown()
        let measurement = try await Measurement.awaiting(changes.count / changeCount) {
          for start in stride(from: 0, to: changes.count, by: changeCount) {
            change(list, posts, changes[start..<start + changeCount])
            shown = Shown(try await top.getData(), readsAll: readsAll)
          }
        }
        try shown.check(posts, changes, readsAll: readsAll)
        return measurement
      }
    }
  }

  /// A round ends when the listener has got what shows after its changes, and its fields were read if all are.
  private static func kept(readsAll: Bool) -> Contestant {
    Contestant("dendro, listener") { turn in
      let posts = StarredPosts(count: turn.scaled(100_000))
      let changes = posts.changes(turn.scaled(20_000) * changeCount)
      return try await turn.withDatabase { database in
        try write(posts, to: database)
        let list = database.reference(withPath: "posts")
        let top = list.queryOrdered(byChild: "starCount").queryLimited(toLast: 100)
        let newest = Mutex<DataSnapshot?>(nil)
        let eventCount = Atomic<Int>(0)
        top.observe(.value) { snapshot in
          newest.withLock { $0 = snapshot }
          eventCount.add(1, ordering: .relaxed)
        }
        await eventsDelivered(of: list)
        var shown = Shown()
        var measurement = await Measurement.awaiting(changes.count / changeCount) {
          for start in stride(from: 0, to: changes.count, by: changeCount) {
            change(list, posts, changes[start..<start + changeCount])
            await eventsDelivered(of: list)
            if readsAll, let snapshot = newest.withLock({ $0 }) {
              shown = Shown(snapshot, readsAll: true)
            }
          }
        }
        if !readsAll, let snapshot = newest.withLock({ $0 }) {
          shown = Shown(snapshot, readsAll: false)
        }
        try shown.check(posts, changes, readsAll: readsAll)
        measurement.add(
          "events", "a round",
          Double(eventCount.load(ordering: .relaxed)) * 10 / Double(changes.count))
        return measurement
      }
    }
  }

  /// What was read of the posts with the most stars.
  private struct Shown {
    var stars = 0
    var fields = ReadFields()

    init() {}

    init(_ snapshot: DataSnapshot, readsAll: Bool) {
      guard readsAll else {
        for post in snapshot { stars += post["starCount"].int ?? 0 }
        return
      }
      for post in snapshot {
        fields.add(
          title: post["title"].string, author: post["author"].string, stars: post["starCount"].int,
          time: post["time"].int)
      }
    }

    func check(
      _ posts: StarredPosts, _ changes: [(post: Int, stars: Int)], readsAll: Bool
    ) throws {
      let isRight =
        readsAll
        ? fields == posts.topFields(after: changes) : stars == posts.topSum(after: changes)
      try expect(isRight, "these are the posts with the most stars")
    }
  }

  private static func write(_ posts: StarredPosts, to database: Database) throws {
    var content: [String: Any] = [:]
    for index in posts.ids.indices {
      content[posts.ids[index]] = [
        "title": posts.titles[index], "author": posts.authors[index],
        "starCount": posts.stars[index], "time": posts.times[index],
      ]
    }
    database.reference(withPath: "posts").setValue(content)
    try database.synchronize()
  }

  /// Not `async`, so that the forms without `await` are called.
  private static func change(
    _ list: DatabaseReference, _ posts: StarredPosts, _ changes: ArraySlice<(post: Int, stars: Int)>
  ) {
    for change in changes {
      list.child(posts.starPaths[change.post]).setValue(change.stars)
    }
  }

  /// Returns when all queued events have been delivered, since completions come after them.
  private static func eventsDelivered(of list: DatabaseReference) async {
    await withCheckedContinuation { continuation in
      list.child("none").getData { _, _ in continuation.resume() }
    }
  }

  /// An index by stars, which is written in the transaction of the change. Each change is one, as with Dendro.
  private static func lmdb(readsAll: Bool) -> Contestant? {
    #if canImport(CDendroLMDB)
      .lmdb("index made by hand") { turn, lmdb in
        let posts = StarredPosts(count: turn.scaled(100_000))
        let changes = posts.changes(turn.scaled(20_000) * changeCount)
        let index = StarIndex(lmdb, posts)
        try index.write()
        var shown = Shown()
        let measurement = try Measurement.blocking(changes.count / changeCount) {
          for start in stride(from: 0, to: changes.count, by: changeCount) {
            for change in changes[start..<start + changeCount] {
              try index.change(change.post, to: change.stars)
            }
            if readsAll {
              shown.fields = try index.topFields(100)
            } else {
              shown.stars = try index.topSum(100)
            }
          }
        }
        try shown.check(posts, changes, readsAll: readsAll)
        return measurement
      }
    #else
      nil
    #endif
  }
}
