import Dendro
import Testing

private typealias Database = SampleDatabase

private func print(_ items: Any...) { SampleOutput.print(items) }

@Suite("Following.md")
struct FollowingSamples {
  @Test("another process's posts")
  func posts() async throws {
    let directory = TemporaryDirectory()
    try await SampleDatabase.$root.withValue(directory.path) {
      let writer = try await Database.open(at: "/var/lib/blog/data")
      try await writer.reference().child("posts").setValue(["a": 1, "b": 2])
      try await SampleOutput().run(until: "2 posts", follow)
      try await writer.close()
    }
  }

  private func follow() async throws {
    // sample
    let database = try await Database.open(following: "/var/lib/blog/data")
    for try await posts in database.reference(withPath: "posts").snapshots {
      print(posts.childrenCount, "posts")
    }
    // end
  }
}
