import Dendro
import Testing

@Suite("Following.md")
struct FollowingSamples {
  /// Compiled, not run: it names a directory outside of the tests.
  static func follow() async throws {
    // sample
    let database = try await Database.open(following: "/var/lib/blog/data")
    for try await posts in database.reference(withPath: "posts").snapshots {
      print(posts.childrenCount, "posts")
    }
    // end
  }
}
