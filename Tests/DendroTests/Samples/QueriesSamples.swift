import Dendro
import Testing

@Suite("Queries.md")
struct QueriesSamples {
  @Test("orders and ranges")
  func everything() async throws {
    let database = Database.inMemory()
    try await database.reference().child("posts").setValue([
      "tree-1": ["stars": 3, "date": "2026-08-01"], "tree-2": ["stars": 5, "date": "2026-09-01"],
      "leaf": ["date": "2026-07-31"],
    ])
    // sample
    let posts = database.reference().child("posts")

    let best = posts.queryOrdered(byChild: "stars").queryLimited(toLast: 10)
    for post in try await best.getData() {  // the best one last
      print(post.key, post["stars"].int ?? 0)
    }

    let august = posts.queryOrdered(byChild: "date")
      .queryStarting(atValue: "2026-08").queryEnding(beforeValue: "2026-09")
    let unrated = posts.queryOrdered(byChild: "stars").queryEqual(toValue: nil)
    let named = posts.queryOrderedByKey().queryStarting(atValue: "tree-")
      .queryEnding(atValue: "tree-\u{f8ff}")  // keys that begin with "tree-"
    // end
    #expect(try await best.getData().map(\.key) == ["leaf", "tree-1", "tree-2"])
    #expect(try await august.getData().map(\.key) == ["tree-1"])
    #expect(try await unrated.getData().map(\.key) == ["leaf"])
    #expect(try await named.getData().map(\.key) == ["tree-1", "tree-2"])
    let byStars = posts.queryOrdered(byChild: "stars")
    let last = try await posts.child("tree-1").getData()
    // sample
    let next = byStars.queryStarting(afterValue: last["stars"].value, childKey: last.key)
    // end
    #expect(try await next.getData().map(\.key) == ["tree-2"])
    // sample
    posts.queryOrdered(byChild: "stars").keepSynced(true)
    // end
  }
}
