import Dendro
import Foundation
import Testing

@Suite("Typed values")
struct TypedValueTests {
  let ref = Database.inMemory().reference()

  static let post: Database.Value = [
    "title": "Rings", "stars": 3, "ratio": 0.5, "isOpen": true, "tags": ["wood", "time"],
    "nothing": nil, "empty": [], "none": [:],
  ]

  @Test("literals, written and read back")
  func literals() async throws {
    try await ref.setValue(Self.post)
    let snapshot = try await ref.getData()
    #expect(
      shown(snapshot.valueInExportFormat())
        == "{isOpen:true,ratio:0.5,stars:3,tags:{0:\"wood\",1:\"time\"},title:\"Rings\"}")
    let value = snapshot.typedValue
    #expect(value == Self.post)
    #expect(value["title"] == "Rings" && value["title"].string == "Rings")
    #expect(value["stars"] == 3 && value["stars"] == 3.0 && value["stars"].int == 3)
    #expect(value["ratio"].double == 0.5 && value["ratio"].int == nil)
    #expect(value["isOpen"].bool == true && value["isOpen"] != 1)
    #expect(value["tags"][1] == "time" && value["tags"] == ["wood", "time"])
    #expect(value["missing"] == nil && value["missing"]["deeper"].isNull)
    #expect(value.children.keys == ["isOpen", "ratio", "stars", "tags", "title"])
    #expect(value["title"].children.isEmpty)
    let name = "Ada"
    let greeting: Database.Value = "Hello, \(name)"
    #expect(greeting.string == "Hello, Ada")
  }

  @Test("nested in an Any, and from a Codable")
  func nested() async throws {
    try await ref.setValue(["a": Self.post["tags"], "b": Database.Value.null, "c": 1])
    #expect(shown(try await ref.getData().value) == "{a:[\"wood\",\"time\"],c:1}")
    try await ref.updateChildValues(["c": Database.Value.string("x"), "a/0": Database.Value.null])
    #expect(shown(try await ref.getData().value) == "{a:[null,\"time\"],c:\"x\"}")
    let list: [Database.Value] = [1, "x", nil, true]
    try await ref.setValue(list)
    #expect(shown(try await ref.getData().value) == "[1,\"x\",null,true]")
    try await ref.setValue(Database.Value.null)
    #expect(try await ref.getData().typedValue.isNull)
    struct Note: Codable, Equatable {
      var id: Int
      var anything: Database.Value
    }
    for anything in [Self.post, "x", 5, true, 0.25, nil] as [Database.Value] {
      let note = Note(id: 1, anything: anything)
      try await ref.setValue(from: note)
      #expect(try await ref.getData(as: Note.self) == note)
      let json = try JSONEncoder().encode(note)
      #expect(try JSONDecoder().decode(Note.self, from: json) == note)
      #expect(
        try Database.Decoder().decode(Note.self, from: Database.Encoder().encode(note)) == note)
    }
    #expect(
      try Database.Decoder().decode(
        Note.self, from: ["id": 1, "anything": Self.post] as [String: Any]
      ).anything == Self.post)
  }

  @Test("priorities and server values may stand in it")
  func metadata() async throws {
    let value: Database.Value = [
      "a": [".value": 1, ".priority": "p"], "b": ["c": 1, ".priority": 2],
    ]
    try await ref.setValue(value)
    #expect(
      shown(try await ref.getData().valueInExportFormat())
        == "{a:{.priority:\"p\",.value:1},b:{.priority:2,c:1}}")
    #expect(try await ref.getData().typedValue == ["a": 1, "b": ["c": 1]])
    try await ref.setValue([".sv": ["increment": 5]] as Database.Value)
    #expect(try await ref.getData().int == 5)
  }

  @Test("children are in the order of keys, and keys are literal")
  func order() async throws {
    let children: Database.Value.Children = [
      "10": 1, "9": 2, "1a": 3, "a": 4, "-3": 5, "é": 6, "e\u{301}": 7, "a.b": 8, "😀": 9, "Ａ": 10,
    ]
    #expect(
      children.keys.map { Array($0.utf8) }
        == ["-3", "9", "10", "1a", "a", "e\u{301}", "é", "😀", "Ａ", "a.b"].map { Array($0.utf8) })
    #expect(children["é"] == 6 && children["e\u{301}"] == 7 && children["a.b"] == 8)
    #expect(children["zz"] == nil && children["b.a"] == nil)
    var storable = children
    storable["a.b"] = nil
    #expect(storable.count == 9)
    try await ref.setValue(Database.Value(storable))
    let back = try await ref.getData().typedValue.children
    #expect(back == storable)
    #expect(Array(back.map(\.value)) == Array(storable.values))
    let error = await failure { try await ref.child("x").setValue(Database.Value(children)) }
    #expect(error?.code == .invalidData)
    #expect(try await ref.getData().typedValue.children == storable)
  }

  @Test("a value that is not finite is refused with its place")
  func notFinite() async throws {
    let error = await failure { try await ref.setValue(["a": .double(.nan)] as Database.Value) }
    #expect(error?.message.contains("/a") == true)
  }

  @Test("a value that is too deep is refused")
  func tooDeep() async throws {
    var value: Database.Value = 1
    for _ in 0..<32 { value = ["a": value] }
    try await ref.setValue(value)
    #expect(try await ref.getData().typedValue == value)
    for _ in 0..<2_000 { value = ["a": value] }
    #expect(await failure { try await ref.setValue(value) }?.code == .invalidData)
    #expect(
      place(thrown { _ = try Database.Encoder().encode(["v": value]) }) == "invalidValue v")
    #expect(
      place(thrown { _ = try Database.Decoder().decode(Database.Value.self, from: value) })?
        .hasPrefix("dataCorrupted a.a") == true)
  }

  /// A value of 100,000 levels around `leaf`.
  private static func bottomless(_ leaf: Database.Value, width: Int = 1) -> Database.Value {
    var value = leaf
    for _ in 0..<100_000 { value = width == 1 ? ["a": value] : ["a": value, "b": 1] }
    return value
  }

  /// Takes a value apart a level at a time: releasing it as a whole would recurse.
  private static func dissolve(_ value: inout Database.Value) {
    while case .children(let children) = value, let first = children.first { value = first.value }
  }

  @Test(
    "values deeper than any stack are compared, hashed, described and refused", arguments: [1, 2])
  func bottomless(width: Int) async throws {
    var values = [5, 5, 6].map { Self.bottomless($0, width: width) }
    #expect(values[0] == values[1] && values[0] != values[2] && values[0] != ["a": 5])
    #expect(values[0].hashValue == values[1].hashValue)
    #expect(Set(values).count == 2)
    #expect("\(values[0])".hasPrefix(#"{"a": {"a": {"#) && "\(values[0])".utf8.count < 10_000)
    #expect(await failure { try await ref.setValue(values[0]) }?.code == .invalidData)
    #expect(await failure { try await ref.setValue(["x": values[0]]) }?.code == .invalidData)
    for error in [
      thrown { _ = try Database.Encoder().encode(values[0]) },
      thrown { _ = try JSONEncoder().encode(values[0]) },
      thrown { try ref.setValue(from: values[0]) },
    ] {
      #expect(place(error)?.hasPrefix("invalidValue") == true)
      #expect(message(error) == "the value is deeper than 128 levels")
      // It carries the value, and can be shown all the same.
      #expect(printed(error).utf8.count < 20_000)
    }
    for index in values.indices { Self.dissolve(&values[index]) }
  }

  @Test("the limits of the coders", arguments: [127, 128, 129])
  func limit(levels: Int) throws {
    var value: Database.Value = 1
    for _ in 0..<levels { value = ["a": value] }
    let error = thrown { _ = try Database.Encoder().encode(value) }
    let errorOfJSON = thrown { _ = try JSONEncoder().encode(value) }
    #expect((error == nil) == (levels <= 128) && (errorOfJSON == nil) == (levels <= 128))
    let json = Data(
      (String(repeating: #"{"a":"#, count: levels) + "1" + String(repeating: "}", count: levels))
        .utf8)
    let decoded = thrown {
      let back = try JSONDecoder().decode(Database.Value.self, from: json)
      #expect(back == value)
    }
    #expect((decoded == nil) == (levels <= 128))
    #expect(decoded == nil || place(decoded)?.hasPrefix("dataCorrupted a.a.") == true)
  }

  @Test(
    "a value describes itself",
    arguments: [
      (nil, "null"), (true, "true"), (5, "5"), (1.0, "1.0"), ("a\"b", #""a\"b""#),
      (
        ["b": 1, "10": [true, nil, "x"], "9": 2.5],
        #"{"9": 2.5, "10": {"0": true, "2": "x"}, "b": 1}"#
      ),
    ] as [(Database.Value, String)])
  func descriptions(_ value: Database.Value, _ text: String) {
    #expect("\(value)" == text && String(reflecting: value) == text)
  }

  @Test("changes")
  func changes() {
    var value: Database.Value = 5
    value["a"] = "x"
    #expect(value == ["a": "x"])
    value["b"]["c"][2] = true
    #expect(value == ["a": "x", "b": ["c": ["2": true]]])
    value["a"] = nil
    value["b"] = [:]
    #expect(value == nil && value.isNull)
    value = ["a": 1, "a": 2, "b": nil]
    #expect(value.children.count == 1 && value["a"] == 2)
    #expect(Database.Value([1, nil, 3]).children.keys == ["0", "2"])
  }

  @Test("equality is that of the tree, and equal values hash alike")
  func equality() {
    let groups: [[Database.Value]] = [
      [nil, [], [:], .children([:])], [false], [true], [0, 0.0, -0.0], [1, 1.0],
      [.integer(.max)], [0x1p63], ["1"], ["é"], ["e\u{301}"], [["a"], ["0": "a"]],
      [["a": 1], ["a": 1.0]], [["a": ["b": 1]]], [["é": 1]], [["e\u{301}": 1]],
    ]
    for (i, a) in groups.enumerated() {
      for (j, b) in groups.enumerated() {
        for x in a {
          for y in b {
            #expect((x == y) == (i == j), "\(x) \(y)")
            if i == j { #expect(x.hashValue == y.hashValue) }
          }
        }
      }
    }
  }

  @Test("the calls of the guides stay what they were")
  func guides() async throws {
    let username = "ada"
    try await ref.setValue(["username": username])
    try await ref.setValue(nil)
    try await ref.setValue(1)
    try await ref.setValue("x")
    try await ref.setValue([1, 2])
    try await ref.setValue(["a": 1, "b": "x"] as [String: Any])
    plainly {
      ref.setValue(["username": username])
      ref.setValue(nil)
      ref.setValue(1)
      ref.setValue(["username": username]) { _, _ in }
    }
    #expect(shown(try await ref.getData().value) == "{username:\"ada\"}")
  }
}
