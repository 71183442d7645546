import Dendro
import Foundation
import Testing

@Suite("ReadingAndWriting.md")
struct ReadingAndWritingSamples {
  struct SoldOut: Error {}

  @Test("from the first reference to transactions")
  func everything() async throws {
    let database = Database.inMemory()
    // sample
    let root = database.reference()
    let ada = root.child("users").child("ada")
    let sameAda = database.reference(withPath: "users/ada")
    print(ada == sameAda, ada.key ?? "", ada.parent?.key ?? "")  // prints true ada users
    // end
    #expect(ada == sameAda)
    // sample
    try await ada.setValue(["name": "Ada", "likes": 0])
    let post = root.child("posts").childByAutoId()
    let key = post.key!
    try await root.updateChildValues([
      "posts/\(key)": ["author": "ada", "title": "Rings", "at": ServerValue.timestamp()],
      "users/ada/posts/\(key)": true,
      "users/ada/likes": ServerValue.increment(1),
    ])
    // end
    #expect(try await ada.child("likes").getData().int == 1)
    // sample
    try await ada.child("likes").increment(by: 2)
    // end
    #expect(try await ada.child("likes").getData().int == 3)
    // sample
    try await root.update { update in
      update.set("posts/\(key)/title", "Rings of a tree")
      update.set("users/ada/draft", "On wood")
      update.increment("users/ada/likes", by: 1)
    }
    // end
    #expect(try await ada.child("likes").getData().int == 4)
    // sample
    try await root.updateChildValues(["posts/\(key)/title": NSNull(), "users/ada/draft": NSNull()])
    try await ada.child("likes").removeValue()
    // end
    #expect(shown(try await ada.getData().value) == #"{name:"Ada",posts:{\#(key):true}}"#)
    // sample
    ada.child("name").setValue("Ada Lovelace") { error, ref in
      if let error {
        print("not saved: \(error.localizedDescription)")
      } else {
        print("saved:", ref.key ?? "")  // prints saved: name
      }
    }
    // end
    // sample
    struct Post: Codable {
      var title: String
      var tags: [String] = []
      @ServerTimestamp var postedAt: Date?
    }
    // end
    // sample
    try await root.child("post").setValue(from: Post(title: "Rings", tags: ["wood"]))
    let read = try await root.child("post").getData(as: Post.self)
    print(read.title, read.tags, read.postedAt != nil)  // prints Rings ["wood"] true
    // end
    #expect(read.title == "Rings" && read.tags == ["wood"] && read.postedAt != nil)
    // sample
    let snapshot = try await ada.getData()
    if snapshot.exists() {
      print(snapshot["name"].string ?? "nobody", snapshot["likes"].int ?? 0)
    }
    // end
    #expect(snapshot["name"].string == "Ada Lovelace")
    try await root.child("users").updateChildValues(["bob/likes": 4, "eve/likes": 5])
    // sample
    let likes = try database.read { view in
      var likes = 0
      try view.child("users") { users in
        try users.forEachChild { _, user in likes += try user.int(at: "likes") ?? 0 }
      }
      return likes
    }
    // end
    #expect(likes == 9)
    try await root.child("users").updateChildValues(["bob": NSNull(), "eve": NSNull()])
    // sample
    let handle = ada.observe(.value) { snapshot in
      print("Ada:", snapshot["name"].string ?? "nobody")
    }
    ada.observeSingleEvent(of: .value) { snapshot in
      print("once:", snapshot.exists())
    }
    ada.removeObserver(withHandle: handle)
    // end
    // sample
    post.runTransactionBlock { post in
      let stars = post.childData(byAppendingPath: "stars")
      stars.value = (stars.value as? Int ?? 0) + 1
      return .success(withValue: post)
    } andCompletionBlock: { error, committed, snapshot in
      print(committed, snapshot?["stars"].int ?? 0)  // prints true 1
    }
    // end
    try await root.child("stock").setValue(3)
    // sample
    let left = try await root.child("stock").transaction { stock in
      let count = stock.value as? Int ?? 0
      guard count > 0 else { throw SoldOut() }
      stock.value = count - 1
      return count - 1
    }
    // end
    #expect(left == 2)
    #expect(try await post.child("stars").getData().int == 1)
  }
}
