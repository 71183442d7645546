import Dendro
import Foundation
import Testing

/// What may be a key, wherever one comes in.
@Suite("Rules of keys and paths")
struct KeyRuleTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let rule: String
    let key: String
    let isGood: Bool

    init(_ rule: String, _ key: String, _ isGood: Bool) {
      (self.rule, self.key, self.isGood) = (rule, key, isGood)
    }

    var testDescription: String { "\(rule): \(isGood ? "taken" : "refused")" }
  }

  static let rows =
    ["[", "]", ".", "#", "$"].flatMap { character in
      [
        Row("\(character) alone", character, false),
        Row("\(character) within", "a\(character)b", false),
      ]
    }
    + (Array(0...0x1F) + [0x7F]).map { code in
      Row("U+\(String(code, radix: 16))", "a\(Unicode.Scalar(UInt8(code)))", false)
    }
    + [
      Row("empty", "", false), Row("768 bytes", String(repeating: "k", count: 768), true),
      Row("769 bytes", String(repeating: "k", count: 769), false),
      Row("768 bytes of two each", String(repeating: "é", count: 384), true),
      Row("770 bytes of two each", String(repeating: "é", count: 385), false),
      Row("a space", " ", true), Row("U+0080", "\u{80}", true), Row("an emoji", "😀", true),
      Row("the last character", "\u{10FFFF}", true), Row("a noncharacter", "\u{FFFF}", true),
      Row("a percent sign", "a%20b", true),
      Row("other signs", "~!@%^&*()-_=+{}|\\:;\"'<>,?`", true),
      Row("a number", "-0012", true), Row("a combining accent", "\u{301}", true),
    ]

  @Test("the same in data, paths, bounds, transactions and typed values", arguments: rows)
  func table(_ row: Row) async throws {
    let root = Database.inMemory().reference()
    let key = row.key
    func check(_ place: String, _ name: String, _ body: () async throws -> Void) async throws {
      let error = await failure(body)
      #expect(error?.name == (row.isGood ? nil : name), "\(place)")
      if row.isGood { try await root.setValue(nil) }
      #expect(try await !root.getData().exists(), "\(place)")
    }
    let (data, path) = ("InvalidFirebaseData", "InvalidPathValidation")
    try await check("data", data) { try await root.setValue([key: 1]) }
    try await check("data below", data) { try await root.child("x").setValue(["y": [key: 1]]) }
    try await check("a typed value", data) { try await root.setValue([key: 1] as Database.Value) }
    try await check("Codable", data) { try await root.setValue(from: [key: 1]) }
    try await check("onDisconnect", data) {
      try await root.onDisconnectSetValue([key: 1])
      try await root.cancelDisconnectOperations()
    }
    try await check("child(_:)", path) { try await root.child(key).setValue(1) }
    try await check("reference(withPath:)", path) {
      try await root.database.reference(withPath: key).setValue(1)
    }
    try await check("a transaction", path) {
      try await root.transaction { $0.childData(byAppendingPath: key).value = 1 }
    }
    try await check("a bound", "InvalidKeyValidation") {
      _ = try await root.queryStarting(atValue: 1, childKey: key).getData()
    }
    try await check("an order", path) {
      _ = try await root.queryOrdered(byChild: key).getData()
    }
    // An empty path of an update is the location itself, with slashes or without.
    if !key.isEmpty {
      try await check("an update's path", data) {
        try await root.updateChildValues(["x/" + key: 1])
      }
    }
    try await root.setValue(row.isGood ? [key: 1] : ["other": 1])
    let snapshot = try await root.getData()
    #expect(snapshot.hasChild(key) == row.isGood)
    #expect(snapshot.childSnapshot(forPath: key).exists() == row.isGood)
  }

  @Test("a path has no limit in bytes, other than that of each key and of 32 levels")
  func longPath() async throws {
    let path = Array(repeating: String(repeating: "k", count: 768), count: 32)
      .joined(separator: "/")
    let ref = Database.inMemory().reference().child(path)
    try await ref.setValue(1)
    #expect(try await ref.getData().int == 1)
  }

  @Test("a key given twice in two spellings of one character is two keys, if it gets that far")
  func spellings() async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("name")
    let recorder = Recorder(database)
    recorder.listen("", ref, [.value])
    // Equal as Swift's strings, not as values.
    try await ref.setValue("\u{e9}")
    try await ref.setValue("e\u{301}")
    #expect(await recorder.take() == ["value null", "value \"\u{e9}\"", "value \"e\u{301}\""])
    #expect(try await ref.getData().string.map { Array($0.unicodeScalars).count } == 2)
  }
}
