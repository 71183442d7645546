import Dendro
import DendroTestSupport
import Foundation
import Testing

/// `update(_:)`: several typed writes at once.
@Suite("Typed updates")
struct TypedUpdateTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  private struct Post: Codable, Equatable {
    var title: String
    var stars: Int
    var note: String?
  }

  @Test("does what updateChildValues does, below any location", arguments: ["/", "x", "x/y"])
  func sameAsDictionary(place: String) async throws {
    let other = Database.inMemory().reference()
    for start in [root, other] {
      try await start.child("x/y").setValue(["n": 5, "gone": true, "kept": "k"])
      try await start.child("n").setValue(7)
    }
    let long = String(repeating: "long", count: 300)
    try await root.child(place).update { update in
      update.set("posts/1/title", "A title")
      update.set("posts/1/stars", 3)
      update.set("posts/1/rating", 4.5)
      update.set("posts/1/draft", false)
      update.set("posts/2", ["title": "Another", "tags": ["a", "b"]])
      update.set("long", long)
      update.increment("n", by: 2)
      update.increment("ratio", by: 0.5)
      update.remove("gone")
      update.set("nothing", nil)
      update.set("counted", ServerValue.increment(4))
    }
    try await other.child(place).updateChildValues([
      "posts/1/title": "A title", "posts/1/stars": 3, "posts/1/rating": 4.5,
      "posts/1/draft": false, "posts/2": ["title": "Another", "tags": ["a", "b"]], "long": long,
      "n": ServerValue.increment(2), "ratio": ServerValue.increment(0.5), "gone": NSNull(),
      "nothing": NSNull(), "counted": ServerValue.increment(4),
    ])
    #expect(shown(try await root.getData().value) == shown(try await other.getData().value))
  }

  private struct Message: Codable {
    var text: String
    @ServerTimestamp var sentAt: Date?
    var edits: Database.Value = .serverIncrement(0)
    var ratio: Database.Value = .serverIncrement(0.5)
    var seen: Database.Value = .serverTimestamp
    var rank: Database.Value = .serverTimestamp

    enum CodingKeys: String, CodingKey {
      case text, sentAt, edits, ratio, seen
      case rank = ".priority"
    }
  }

  @Test("a message and its counters in one write, with every server value, priorities too")
  func messageAndCounters() async throws {
    try await root.setValue(["rooms": ["7": ["unread": ["ada": 2, "ben": 5], "name": "Tea"]]])
    let room = root.child("rooms/7")
    try await room.update { update in
      try update.set("messages/m1", from: Message(text: "Hello", sentAt: nil))
      update.set("messages/m2", ["text": "Hi", "at": ServerValue.timestamp()])
      update.set("last", ServerValue.timestamp())
      update.set("unread/ada", ServerValue.increment(1))
      update.increment("unread/ben", by: 1)
      update.setPriority("name", ServerValue.timestamp())
    }
    let snapshot = try await room.getData()
    let time = try #require(snapshot["last"].double)
    #expect(time > 1_700_000_000_000)
    let message = try snapshot["messages/m1"].data(as: Message.self)
    #expect(message.sentAt == Date(timeIntervalSince1970: time / 1000))
    #expect(message.edits == 0 && message.ratio == 0.5 && message.seen == .integer(Int64(time)))
    #expect(snapshot["messages/m1"].priority as? Double == time)
    #expect(snapshot["messages/m2/at"].double == time)
    #expect(snapshot["unread"].typedValue == ["ada": 3, "ben": 6])
    #expect(snapshot["name"].priority as? Double == time)
    #expect(snapshot["name"].string == "Tea")
    try await room.updateChildValues([
      "messages/m3": ["n": ServerValue.increment(2), ".priority": ServerValue.timestamp()],
      "name/.priority": 3,
    ])
    #expect(try await room.child("messages/m3/n").getData().int == 2)
    #expect(try await room.child("name").getData().priority as? Double == 3)
    try await room.update { update in update.setPriority("name", nil) }
    #expect(try await room.child("name").getData().priority is NSNull)
    let error = await failure { try await room.update { $0.setPriority("name", true) } }
    #expect(error?.message == "at /rooms/7/name: a boolean cannot be a priority")
  }

  @Test("a string of 10 MiB is taken, a longer one is not, and the error names the path")
  func longestString() async throws {
    let tooLong = String(repeating: "s", count: 10 * 1024 * 1024 + 1)
    let error = await #expect(throws: DatabaseError.self) {
      try await root.update { $0.set("long", tooLong) }
    }
    #expect(error?.message.contains("at /long: a string of 10485761 bytes") == true)
    #expect(try await root.getData().exists() == false)
    let longest = String(tooLong.dropLast())
    try await root.update { $0.set("long", longest) }
    #expect(try await root.child("long").getData().string?.utf8.count == longest.utf8.count)
  }

  @Test("without waiting: shown at once, one event for all, and durable like other writes")
  func atOnce() async throws {
    let partial = Shared(0)
    let handle = root.observe(.value) { snapshot in
      if snapshot["a"].exists() != snapshot["b"].exists() { partial.withLock { $0 += 1 } }
    }
    try await root.child("first").setValue(1)
    plainly {
      root.update { update in
        update.set("a", 1)
        update.set("b/c", "text")
        update.increment("first", by: 1)
      }
    }
    let shown = try await root.getData()
    #expect(shown["a"].int == 1 && shown["b"]["c"].string == "text" && shown["first"].int == 2)
    try await database.synchronize()
    // The listener's queue is behind once this block has run.
    try await root.child("last").setValue(true)
    root.removeObserver(withHandle: handle)
    #expect(
      partial.value == 0, "a state with one of the writes and not another was shown")
  }

  @Test("values of Encodable types")
  func encodable() async throws {
    let post = Post(title: "T", stars: 2, note: nil)
    try await root.update { update in
      try update.set("post", from: post)
      try update.set("word", from: "text")
      try update.set("none", from: String?.none)
    }
    #expect(try await root.child("post").getData(as: Post.self) == post)
    #expect(try await root.child("word").getData().string == "text")
    #expect(try await root.child("none").getData().exists() == false)
  }

  @Test("the first mistake refuses all of it, with the error that says where")
  func refused() async throws {
    let mistakes: [(String, (inout DatabaseUpdate) -> Void)] = [
      ("above another", { $0.set("a/b", 1) }),
      ("twice", { $0.set("a", 2) }),
      ("bad path", { $0.set("a.b", 2) }),
      ("not a number", { $0.set("n", Double.nan) }),
      ("infinite increment", { $0.increment("n", by: Double.infinity) }),
      ("too deep", { $0.set(String(repeating: "k/", count: 33), 1) }),
      ("no value", { $0.set("o", NSObject()) }),
    ]
    for (name, mistake) in mistakes {
      let error = await failure {
        try await root.update { update in
          update.set("a", 1)
          mistake(&update)
          update.set("z", 1)
        }
      }
      #expect(error != nil, "\(name)")
      if ["not a number", "no value"].contains(name) {
        #expect(
          error?.message.hasPrefix(name == "no value" ? "at /o: " : "at /n: ") ?? false,
          "\(name): \(error?.message ?? "")")
      }
      #expect(try await root.getData().exists() == false, "\(name)")
    }
    #expect(await failure { try await root.child("#").update { $0.set("a", 1) } } != nil)
    #expect(await failure { try await root.child(".info").update { $0.set("a", 1) } } != nil)
  }

  @Test("server values in values, as an entry of their own, and as priorities")
  func serverValues() async throws {
    let before = Int(Date().timeIntervalSince1970 * 1000) - 1000
    try await root.child("count").setValue(2)
    try await root.update { update in
      update.set("at", ServerValue.timestamp())
      update.set("count", ServerValue.increment(3))
      update.set(
        "post", ["created": ServerValue.timestamp(), ".priority": ServerValue.timestamp()])
    }
    #expect(try await root.child("count").getData().value as? Int == 5)
    let time = try #require(try await root.child("at").getData().value as? Int)
    #expect(time > before)
    let post = try await root.child("post").getData()
    #expect(post.childSnapshot(forPath: "created").value as? Int == time)
    #expect(post.priority as? Int == time)
  }

  @Test("what the block throws comes out, and nothing is written")
  func blockThrows() async throws {
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try plainly {
        try root.update { (update) throws(Stop) in
          update.set("a", 1)
          throw Stop()
        }
      }
    }
    await #expect(throws: Stop.self) {
      try await root.update { update in
        update.set("a", 1)
        throw Stop()
      }
    }
    #expect(try await root.getData().exists() == false)
  }

  @Test("without waiting, an error is the error handler's")
  func errorHandler() async throws {
    let codes = Shared<[DatabaseError.Code]>([])
    var options = DatabaseOptions()
    options.errorHandler = { error in codes.withLock { $0.append(error.code) } }
    let database = Database.inMemory(options: options)
    plainly { database.reference().update { $0.set("a.b", 1) } }
    try await database.close()
    #expect(codes.value == [.invalidPath])
  }
}
