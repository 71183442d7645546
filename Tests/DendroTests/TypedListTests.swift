import Dendro
import DendroTestSupport
import Foundation
import Testing

/// Children as values of one type.
@Suite("Typed lists")
struct TypedListTests {
  private let ref = Database.inMemory().reference().child("rooms/7/messages")

  private struct Message: Codable, Hashable {
    var text: String
    var stars: Int?
  }

  private func fill() async throws {
    for (key, stars) in [("c", 1), ("a", 3), ("b", 2)] {
      try await ref.child(key).setValue(from: Message(text: "text \(key)", stars: stars))
    }
    try await ref.child("b").setPriority(1)
  }

  @Test("children in the order of the query, and by key")
  func order() async throws {
    try await fill()
    let byStars = try await ref.queryOrdered(byChild: "stars").getData(as: Children<Message>.self)
    #expect(byStars.map(\.key) == ["c", "b", "a"])
    #expect(byStars.map(\.id) == byStars.keys)
    #expect(byStars.values.map(\.stars) == [1, 2, 3])
    #expect(byStars.map(\.priority) == [.null, 1, .null])
    #expect(byStars[key: "a"] == Message(text: "text a", stars: 3))
    #expect(byStars[key: "x"] == nil)
    #expect(byStars.index(of: "b") == 1)
    let last = try await ref.queryOrderedByKey().queryLimited(toLast: 2)
      .getData(as: Children<Message>.self)
    #expect(last.keys == ["b", "c"])
    #expect(last[key: "a"] == nil && last[key: "c"]?.stars == 1)
    let snapshot = try await ref.getData()
    #expect(try snapshot.children(as: Message.self).keys == ["a", "c", "b"])
    #expect(
      try await ref.getData(as: Children<Message>.self) == snapshot.children(as: Message.self))
  }

  @Test("nothing has no children, and a scalar is no list")
  func none() async throws {
    #expect(try await ref.getData(as: Children<Message>.self).isEmpty)
    try await ref.setValue(5)
    await #expect {
      try await ref.getData(as: Children<Int>.self)
    } throws: { error in
      guard case DecodingError.typeMismatch(_, let context) = error else { return false }
      return context.codingPath.map(\.stringValue) == ["rooms", "7", "messages"]
    }
  }

  @Test("keys that differ in Unicode normalization only are different ones")
  func normalization() {
    let a = Child(key: "\u{E9}", value: 1)
    let b = Child(key: "e\u{301}", value: 1)
    #expect(a != b && a == a)
    #expect(Children([a]) != Children([b]))
  }

  @Test("look-up finds every key, in any order, also those that differ in normalization only")
  func lookUp() {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<200 {
      let keys = ["a", "b", "10", "9", "\u{e9}", "e\u{301}", "z"].shuffled(using: &random)
        .prefix(random.below(8))
      let children = Children(keys.enumerated().map { Child(key: $1, value: $0) })
      for (number, key) in keys.enumerated() { #expect(children[key: key] == number) }
      #expect(children[key: "missing"] == nil && children.count == keys.count)
    }
  }

  @Test("a child that does not fit ends the reading, or is skipped and reported, with its path")
  func undecodable() async throws {
    try await fill()
    try await ref.child("b/text").setValue(7)
    let error = await #expect(throws: DecodingError.self) {
      try await ref.getData(as: Children<Message>.self)
    }
    #expect(place(error) == "typeMismatch rooms.7.messages.b.text")
    let skipped = Shared<[String]>([])
    let children = try await ref.getData(
      as: Children<Message>.self,
      undecodable: .skipping { child, error in
        skipped.withLock { $0.append("\(child.key): \(place(error) ?? "")") }
      })
    #expect(children.keys == ["a", "c"])
    #expect(skipped.value == ["b: typeMismatch rooms.7.messages.b.text"])
  }

  @Test("as sequences: of a value, and of children")
  func sequences() async throws {
    let stars = ref.child("a/stars")
    var numbers = stars.values(as: Int?.self).makeAsyncIterator()
    var lists = ref.values(as: Children<Message>.self).makeAsyncIterator()
    #expect(try await numbers.next() == .some(nil))
    #expect(try await lists.next()?.isEmpty == true)
    try await fill()
    #expect(try await numbers.next() == 3)
    #expect(try await lists.next()?.keys == ["a", "c", "b"])
    try await stars.setValue("many")
    await #expect(throws: DecodingError.self) { try await numbers.next() }
    await #expect(throws: DecodingError.self) { try await lists.next() }
    var skipping = ref.values(as: Children<Message>.self, undecodable: .skipping { _, _ in })
      .makeAsyncIterator()
    #expect(try await skipping.next()?.keys == ["c", "b"])
  }

  @Test("a child with a new push id in one call")
  func adding() async throws {
    let first = try await ref.addChild(from: Message(text: "one"))
    let second = try await ref.addChild(from: Message(text: "two"))
    let third: String = try plainly { try ref.addChild(from: Message(text: "three")) }
    let messages = try await ref.getData(as: Children<Message>.self)
    #expect(messages.keys == [first, second, third])
    #expect(messages.values.map(\.text) == ["one", "two", "three"])
    #expect(await failure { try await ref.addChild(from: [1, nil]) }?.code == .invalidData)
  }
}
