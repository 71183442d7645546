import Dendro
import Foundation
import Observation
import Synchronization
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

  struct Message: Codable {
    var text: String
  }

  private struct Room: Codable {
    var name: String
    var guests: Int
  }

  @Test("lists of one's own types")
  func lists() async throws {
    let room = Database.inMemory().reference().child("rooms/7")
    try await room.setValue(["name": "Tea", "guests": 1, "color": "red"])
    let messages = room.child("messages")
    // sample
    let id = try await messages.addChild(from: Message(text: "Hello"))
    let newest = try await messages.queryLimited(toLast: 50).getData(as: Children<Message>.self)
    print(newest.count, newest[key: id]?.text ?? "")
    for message in newest { print(message.key, message.value.text) }
    // end
    #expect(newest.keys == [id])
    try await messages.child("bad").setValue(7)
    // sample
    let readable = try await messages.getData(
      as: Children<Message>.self,
      undecodable: .skipping { child, error in print("skipped \(child.key): \(error)") })
    // end
    #expect(readable.keys == [id])
    try await messages.child("bad").removeValue()
    try await shown(messages)
  }

  private func shown(_ messages: DatabaseReference) async throws {
    let seen = Mutex(0)
    func show(_ newest: Children<Message>) { seen.withLock { $0 += newest.count } }
    // Without another write the loop would not end.
    let watching = Task {
      // sample
      for try await newest in messages.queryLimited(toLast: 50).values(as: Children<Message>.self) {
        show(newest)
      }
      // end
    }
    while seen.withLock({ $0 }) == 0 { await Task.yield() }
    watching.cancel()
    try await watching.value
    #expect(seen.withLock { $0 } == 1)
  }

  // sample
  @MainActor @Observable
  final class RoomModel {
    private(set) var messages = Children<Message>([])
    @ObservationIgnored private var token: ListenerToken?

    init(_ room: DatabaseReference) {
      let newest = room.child("messages").queryLimited(toLast: 50)
      token = newest.listen(as: Children<Message>.self) { [weak self] in self?.messages = $0 }
    }
  }
  // end

  @Test("an observable model of a location")
  @MainActor func model() async throws {
    let database = Database.inMemory()
    let room = database.reference().child("rooms/7")
    let changes = Mutex(0)
    var model: RoomModel? = RoomModel(room)
    await database.waitForPendingEvents()
    withObservationTracking {
      _ = model?.messages
    } onChange: {
      changes.withLock { $0 += 1 }
    }
    try await room.child("messages").addChild(from: Message(text: "Hello"))
    await database.waitForPendingEvents()
    #expect(model?.messages.values.map(\.text) == ["Hello"])
    #expect(changes.withLock { $0 } == 1)
    weak let released = model
    model = nil
    #expect(released == nil)
  }

  @Test("updates and transactions of one's own types")
  func changes() async throws {
    let room = Database.inMemory().reference().child("rooms/7")
    try await room.setValue(["name": "Tea", "guests": 1, "color": "red"])
    let id = try await room.child("messages").addChild(from: Message(text: "Hello"))
    // sample
    try await room.update { update in
      try update.set("messages/\(id)", from: Message(text: "Hello again"))
      update.set("lastMessageAt", ServerValue.timestamp())
      update.increment("messageCount", by: 1)
    }
    // end
    // sample
    let guests = try await room.runTransaction(as: Room.self) { room in
      room?.guests += 1
      return room?.guests
    }
    // end
    #expect(guests == 2)
    let data = try await room.getData()
    #expect(data["color"].string == "red" && data["messages/\(id)/text"].string == "Hello again")
    #expect(data["messageCount"].int == 1 && data["lastMessageAt"].exists())
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
