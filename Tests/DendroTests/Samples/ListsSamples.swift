import Dendro
import Testing

@Suite("Lists.md")
struct ListsSamples {
  @Test("append, pick, page, watch")
  @MainActor
  func everything() async throws {
    let database = Database.inMemory()
    // sample
    let posts = database.reference().child("posts")
    for (title, stars) in [("Rings", 3), ("Bark", 12), ("Roots", 7)] {
      try await posts.childByAutoId().setValue(["title": title, "stars": stars])
    }
    // end
    // sample
    let best = posts.queryOrdered(byChild: "stars").queryLimited(toLast: 2)
    for post in try await best.getData() {
      print(post["title"].string ?? "", post["stars"].int ?? 0)  // prints Roots 7, then Bark 12
    }
    // end
    #expect(try await best.getData().map { $0["stars"].int } == [7, 12])
    // sample
    var page = posts.queryOrdered(byChild: "stars").queryLimited(toFirst: 2)
    var titles: [String] = []
    while true {
      let children = Array(try await page.getData())
      titles += children.compactMap { $0["title"].string }
      guard let last = children.last else { break }
      page = posts.queryOrdered(byChild: "stars").queryLimited(toFirst: 2)
        .queryStarting(afterValue: last["stars"].int, childKey: last.key)
    }
    print(titles)  // prints ["Rings", "Roots", "Bark"]
    // end
    #expect(titles == ["Rings", "Roots", "Bark"])
    // sample
    let latest = posts.queryLimited(toLast: 2)
    latest.observe(.childAdded) { post in
      print("came:", post["title"].string ?? "")
    }
    latest.observe(.childRemoved) { post in
      print("went:", post["title"].string ?? "")
    }
    // end
    // sample
    var keys: [String] = []
    func place(_ post: DataSnapshot, after previous: String?) {
      keys.removeAll { $0 == post.key }
      keys.insert(post.key, at: previous.flatMap { keys.firstIndex(of: $0) }.map { $0 + 1 } ?? 0)
    }
    let byStars = posts.queryOrdered(byChild: "stars")
    byStars.observe(.childAdded, andPreviousSiblingKeyWith: place)
    byStars.observe(.childMoved, andPreviousSiblingKeyWith: place)
    byStars.observe(.childRemoved) { post in keys.removeAll { $0 == post.key } }
    byStars.observe(.value) { posts in keys = posts.map(\.key) }
    // end
    // sample
    for try await event in byStars.childEvents() {
      print(event.type, event.snapshot.key, "after", event.previousSiblingKey ?? "none")
      if event.snapshot["title"].string == "Bark" { break }
    }
    // end
    let made = try await posts.getData().map(\.key)
    try await posts.child(made[0]).child("stars").setValue(8)
    await settle(database)
    #expect(keys == [made[2], made[0], made[1]])
    // Both change places at once.
    try await posts.updateChildValues(["\(made[0])/stars": 20, "\(made[2])/stars": 10])
    await settle(database)
    #expect(keys == [made[2], made[1], made[0]])
    posts.removeAllObservers()
  }
}
