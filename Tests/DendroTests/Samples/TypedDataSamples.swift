import Dendro
import Foundation
import Testing

@Suite("TypedData.md")
struct TypedDataSamples {
  @Test("types of one's own")
  func own() async throws {
    let posts = Database.inMemory().reference().child("posts")
    let ref = posts.childByAutoId()
    // sample
    struct Post: Codable {
      var title: String
      var tags: [String]
      @ServerTimestamp var postedAt: Date?
    }

    try await ref.setValue(from: Post(title: "Rings", tags: ["wood"], postedAt: nil))
    let post = try await ref.getData(as: Post.self)
    for child in try await posts.getData() { print(try child.data(as: Post.self).title) }
    // end
    #expect(post.title == "Rings" && post.tags == ["wood"] && post.postedAt != nil)
  }

  @Test("data without Any")
  func values() async throws {
    let ref = Database.inMemory().reference()
    // sample
    var post: Database.Value = ["title": "Rings", "tags": ["wood", "time"]]
    post["stars"] = 3
    try await ref.setValue(post)

    let value = try await ref.getData().typedValue
    print(value["stars"].int ?? 0)  // prints 3
    print(value["tags"][1].string ?? "")  // prints time
    for (key, child) in value.children { print(key, child) }
    // end
    #expect(value == post && value["stars"].int == 3 && value["tags"][1].string == "time")
  }
}
