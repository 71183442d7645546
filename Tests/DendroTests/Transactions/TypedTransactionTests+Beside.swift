import Dendro
import DendroTestSupport
import Foundation
import Testing

/// What stands beside what a type knows.
@Suite("Typed transactions beside other data")
struct TypedTransactionBesideTests {
  private let ref = Database.inMemory().reference().child("rooms/7")

  private struct Ranked: Codable, Equatable {
    enum CodingKeys: String, CodingKey {
      case name
      case priority = ".priority"
    }
    var name: String
    var priority: Double?
  }

  private struct Settings: Codable, Equatable {
    var color: String?
  }

  private struct Seat: Codable, Equatable {
    var guest: String?
  }

  private struct Room: Codable, Equatable {
    var guests: Int?
    var settings: Settings?
    var seats: [String: Seat] = [:]
    var tags: [String] = []
  }

  private struct Task: Codable, Equatable {
    var text: String
    var isDone: Bool?
  }

  private struct Stamped: Codable {
    var name: String
    @ServerTimestamp var changedAt: Date?
  }

  private func write(_ value: Database.Value, priority: Int? = nil) async throws {
    try await ref.setValue(value, andPriority: priority)
  }

  private var value: Database.Value {
    get async throws { try await ref.getData().typedValue }
  }

  @Test("a type with a priority keeps other fields, and changes the priority alone")
  func priority() async throws {
    try await write(["name": "a", "color": "red"], priority: 3)
    try await ref.runTransaction(as: Ranked.self) { _ in }
    try await ref.runTransaction(as: Ranked.self) { $0?.name = "b" }
    #expect(
      try await ref.getData().valueInExportFormat() as? NSDictionary
        == ["name": "b", "color": "red", ".priority": 3])
    try await ref.runTransaction(as: Ranked.self) { $0?.priority = 4 }
    #expect(
      try await ref.getData().valueInExportFormat() as? NSDictionary
        == ["name": "b", "color": "red", ".priority": 4])
    try await ref.runTransaction(as: Ranked.self) { $0?.priority = nil }
    #expect(
      try await ref.getData().valueInExportFormat() as? NSDictionary
        == ["name": "b", "color": "red"])
  }

  @Test("what is changed keeps its priority")
  func keptPriorities() async throws {
    try await write(5, priority: 2)
    try await ref.runTransaction(as: Int.self) { $0 = ($0 ?? 0) + 1 }
    let snapshot = try await ref.getData()
    #expect(snapshot.int == 6 && snapshot.priority as? Double == 2)
    try await write(["guests": 1], priority: 3)
    try await ref.child("guests").setPriority(4)
    try await ref.runTransaction(as: Room.self) { $0?.guests = 2 }
    #expect(try await ref.child("guests").getData().priority as? Double == 4)
    // Whatever comes first.
    for _ in 0..<20 {
      try await write(["seats": ["s1": ["guest": "Ada"]]], priority: 3)
      try await ref.runTransaction(as: Room.self) {
        $0?.seats = [:]
        $0?.tags = ["x"]
      }
      let room = try await ref.getData()
      #expect(room.typedValue == ["tags": ["x"]] && room.priority as? Double == 3)
    }
  }

  @Test("values that look empty to a type, and are not, can be changed and left")
  func looksEmpty() async throws {
    for old in [
      ["other": 2], ["settings": ["unknown": 1]], ["seats": ["s1": ["price": 5]]],
    ] as [Database.Value] {
      try await write(old)
      try await ref.runTransaction(as: Room.self) { _ in }
      #expect(try await value == old)
    }
    try await write(["other": 2, "guests": 1, "settings": ["color": "red", "unknown": 1]])
    try await ref.runTransaction(as: Room.self) {
      $0?.guests = nil
      $0?.settings?.color = nil
    }
    #expect(try await value == ["other": 2, "settings": ["unknown": 1]])
  }

  @Test("what would be lost is refused, with its place")
  func lost() async throws {
    let changes: [(old: Database.Value, @Sendable (inout Room?) -> Void, message: String)] = [
      (
        ["guests": 1], { $0?.guests = nil },
        "at /rooms/7: nothing is left of an empty value, so the value"
      ),
      (
        ["guests": 1, "seats": ["s1": ["guest": "Ada"]]], { $0?.seats["s1"]?.guest = nil },
        "at /rooms/7/seats/s1: nothing is left of an empty value, so the key"
      ),
      (
        ["guests": 1], { $0?.seats["s2"] = Seat() },
        "at /rooms/7/seats/s2: nothing is left of an empty value, so the key"
      ),
      (
        ["guests": 1, "seats": ["s1": ["guest": "Ada"]]], { $0?.seats["s2"] = Seat() },
        "at /rooms/7/seats/s2: nothing is left of an empty value, so the key"
      ),
      (
        ["guests": 1], { $0?.settings = Settings() },
        "at /rooms/7/settings: nothing is left of an empty value, so the optional"
      ),
    ]
    for (old, body, message) in changes {
      try await write(old)
      let error = await failure { try await ref.runTransaction(as: Room.self) { body(&$0) } }
      #expect(error?.code == .invalidData)
      #expect(error?.message.hasPrefix(message) == true, "\(String(describing: error))")
      #expect(try await value == old)
    }
  }

  private static let tasks: Database.Value = [
    ["text": "a", "owner": "x"], ["text": "b", "owner": "y"], ["text": "c", "owner": "z"],
  ]

  @Test("an element of an array takes what is unknown of it to its new place")
  func elements() async throws {
    let changes: [(@Sendable (inout [Task]?) -> Void, Database.Value)] = [
      ({ $0?.remove(at: 0) }, [["text": "b", "owner": "y"], ["text": "c", "owner": "z"]]),
      ({ $0?.removeLast() }, [["text": "a", "owner": "x"], ["text": "b", "owner": "y"]]),
      (
        { $0?.insert(Task(text: "n"), at: 0) },
        [
          ["text": "n"], ["text": "a", "owner": "x"], ["text": "b", "owner": "y"],
          ["text": "c", "owner": "z"],
        ]
      ),
      (
        { $0?.swapAt(0, 2) },
        [["text": "c", "owner": "z"], ["text": "b", "owner": "y"], ["text": "a", "owner": "x"]]
      ),
      (
        { $0?[1].isDone = true },
        [
          ["text": "a", "owner": "x"], ["text": "b", "owner": "y", "isDone": true],
          ["text": "c", "owner": "z"],
        ]
      ),
      // One that is neither what it was nor another is a new one.
      (
        { $0 = [Task(text: "c"), Task(text: "n")] }, [["text": "c", "owner": "z"], ["text": "n"]]
      ),
      ({ $0 = [] }, .null),
    ]
    for (number, (body, new)) in changes.enumerated() where new != .null {
      try await write(Self.tasks)
      try await ref.runTransaction(as: [Task].self) { body(&$0) }
      #expect(try await value == new, "change \(number)")
    }
  }

  @Test(
    "random arrays are what they were set to, and each element has what is its own",
    arguments: 0..<50)
  func randomElements(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let before = (0..<random.below(8)).map { _ in Task(text: "\(random.below(6))") }
    let after = (0..<random.below(8)).map { _ in Task(text: "\(random.below(6))") }
    try await write(
      [
        "list": Database.Value(
          before.map { ["text": .string($0.text), "owner": .string("of " + $0.text)] }), "x": 1,
      ])
    struct Holder: Codable {
      var list: [Task] = []
    }
    try await ref.runTransaction(as: Holder.self) { $0?.list = after }
    let list = try await ref.child("list").getData()
    #expect(
      try list.children(as: Task.self).values.map(\.text) == after.map(\.text), "seed \(seed)")
    for child in list {
      // Where as many stand as before, one that changed stays what it was.
      guard let owner = child["owner"].string, before.count != after.count else { continue }
      #expect(owner == "of " + (child["text"].string ?? ""), "seed \(seed)")
    }
  }

  private enum Color: String, Codable, CaseIterable { case red, green, blue, black }

  private struct Box: Codable, Equatable {
    var tags: Set<String> = []
    var counts: [Color: Int] = [:]
    var rows: [[Int]?]?
    var numbers: [Int?]?
    var ranked: Ranked?
  }

  @Test("sets, and dictionaries with other keys than strings, are what they were set to")
  func unordered() async throws {
    for round in 0..<30 {
      let names = (0..<8).map { "tag \($0 + round)" }
      var box = Box(tags: Set(names), counts: [.red: 1, .green: 2, .blue: 3])
      try await ref.setValue(from: box)
      let gone = names[round % 8]
      try await ref.runTransaction(as: Box.self) {
        $0?.tags.remove(gone)
        $0?.counts[.green] = 20
        $0?.counts[.red] = nil
      }
      box.tags.remove(gone)
      box.counts = [.green: 20, .blue: 3]
      #expect(try await ref.getData(as: Box.self) == box)
    }
  }

  @Test("a change to what would be read as something else is refused")
  func readAsSomethingElse() async throws {
    let box = Box(rows: [[1], [2]], numbers: [1], ranked: Ranked(name: "a", priority: 1))
    try await ref.setValue(from: box)
    let changes: [@Sendable (inout Box?) -> Void] = [
      { $0?.rows = [[], [2]] }, { $0?.rows = [[1], []] }, { $0?.rows = [] },
      { $0?.numbers = [1] + [Int?](repeating: nil, count: 2000) + [5] },
      { $0?.numbers = [1, nil] },
    ]
    for (number, body) in changes.enumerated() {
      let error = await failure { try await ref.runTransaction(as: Box.self) { body(&$0) } }
      #expect(error?.code == .invalidData, "change \(number)")
      #expect(try await ref.getData(as: Box.self) == box, "change \(number)")
    }
  }

  @Test("long arrays keep what is unknown of their elements, however many change")
  func longArray() async throws {
    try await write(
      Database.Value((0..<300).map { ["text": .string("\($0)"), "owner": .string("of \($0)")] }))
    try await ref.runTransaction(as: [Task].self) {
      $0?.insert(Task(text: "new"), at: 0)
      $0?[300].text = "changed"
    }
    let list = try await ref.getData()
    for number in 0..<299 { #expect(list["\(number + 1)/owner"].string == "of \(number)") }
  }

  @Test("keys that differ in Unicode normalization only are different ones")
  func normalization() async throws {
    try await write(["\u{E9}": 1])
    try await ref.runTransaction(as: [String: Int].self) { $0 = ["e\u{301}": 1] }
    let keys = try await ref.getData().map { Array($0.key.unicodeScalars) }
    #expect(keys == [["e", "\u{301}"]])
  }

  @Test("a time that the database fills in is written with a change, and not without")
  func timestamp() async throws {
    try await write(["name": "a"])
    try await ref.runTransaction(as: Stamped.self) { _ in }
    #expect(try await value == ["name": "a"])
    try await ref.runTransaction(as: Stamped.self) { $0?.name = "b" }
    #expect(try await ref.getData(as: Stamped.self).changedAt != nil)
    try await ref.child("changedAt").setValue(1)
    try await ref.runTransaction(as: Stamped.self) { $0?.changedAt = nil }
    #expect((try await ref.child("changedAt").getData().int ?? 0) > 1)
  }
}
