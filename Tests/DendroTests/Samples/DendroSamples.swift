import Dendro
import Testing

private typealias Database = SampleDatabase

@Suite("Dendro.md")
struct DendroSamples {
  @Test("a post")
  func overview() async throws {
    let directory = TemporaryDirectory()
    try await SampleDatabase.$root.withValue(directory.path) {
      // sample
      let database = try await Database.open(at: "blog")
      let posts = database.reference().child("posts")
      posts.observe(.childAdded) { post in
        print("new post:", post.childSnapshot(forPath: "title").string ?? "untitled")
      }
      let post = posts.childByAutoId()
      try await post.setValue(["title": "Tree rings", "stars": 0])
      try await post.child("stars").setValue(ServerValue.increment(1))
      try await database.close()
      // end
      let again = try await Database.open(at: "blog")
      #expect(
        try await again.reference(withPath: "posts/\(post.key ?? "")/stars").getData().int == 1)
      try await again.close()
    }
  }

  struct SoldOut: Error {}

  @Test("a transaction")
  func transaction() async throws {
    let stock = Database.inMemory().reference()
    try await stock.setValue(3)
    // sample
    let left = try await stock.transaction { stock in
      let count = stock.value as? Int ?? 0
      guard count > 0 else { throw SoldOut() }  // writes nothing
      stock.value = count - 1
      return count - 1
    }
    // end
    #expect(left == 2)
  }
}
