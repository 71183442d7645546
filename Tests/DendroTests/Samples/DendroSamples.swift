import Dendro
import Testing

@Suite("Dendro.md")
struct DendroSamples {
  /// Compiled, not run: it names a directory where the process stands. The same calls run in
  /// `SampleTests`.
  static func overview() async throws {
    // sample
    let database = try await Database.open(at: "blog")
    let posts = database.reference().child("posts")
    posts.observe(.childAdded) { post in
      print("new post:", post.childSnapshot(forPath: "title").string ?? "untitled")
    }
    let post = posts.childByAutoId()
    try await post.setValue(["title": "Tree rings", "stars": 0])
    try await post.child("stars").setValue(ServerValue.increment(1))
    // end
  }
}
