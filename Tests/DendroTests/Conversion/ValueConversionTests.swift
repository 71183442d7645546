import Dendro
import Foundation
import Testing

/// A value that is set and the export form of the data then.
struct Conversion: CustomTestStringConvertible, @unchecked Sendable {
  let name: String
  let value: Any?
  let stored: String

  init(_ name: String, _ value: Any?, _ stored: String) {
    self.name = name
    self.value = value
    self.stored = stored
  }

  var testDescription: String { name }
}

@Suite("Values become nodes")
struct ValueConversionTests {
  @Test(
    "scalars keep their type",
    arguments: [
      Conversion("true", true, "true"),
      Conversion("false", false, "false"),
      Conversion("1", 1, "1"),
      Conversion("1.0", 1.0, "1.0"),
      Conversion("string", "é😀", "\"é😀\""),
      Conversion("empty string", "", "\"\""),
      Conversion("NSString", NSString("x"), "\"x\""),
      Conversion("Substring", "abc".dropFirst(), "\"bc\""),
      Conversion("NSNumber true", NSNumber(value: true), "true"),
      Conversion("NSNumber 0", NSNumber(value: 0), "0"),
      Conversion("NSNumber 1", NSNumber(value: 1), "1"),
      Conversion("NSNumber 1.0", NSNumber(value: 1.0), "1.0"),
      Conversion("NSNumber Int8", NSNumber(value: Int8(1)), "1"),
      Conversion("NSNumber Float", NSNumber(value: Float(0.5)), "0.5"),
      Conversion("NSNumber UInt64.max", NSNumber(value: UInt64.max), "1.8446744073709552e+19"),
      Conversion("Int64.max", Int64.max, "9223372036854775807"),
      Conversion("Int64.min", Int64.min, "-9223372036854775808"),
      Conversion("2^53+1", 9_007_199_254_740_993, "9007199254740993"),
      Conversion("UInt64.max", UInt64.max, "1.8446744073709552e+19"),
      Conversion("UInt64 that fits", UInt64(Int64.max), "9223372036854775807"),
      Conversion("UInt", UInt(7), "7"),
      Conversion("Int8", Int8(-8), "-8"),
      Conversion("UInt8", UInt8(8), "8"),
      Conversion("Int16", Int16(16), "16"),
      Conversion("UInt16", UInt16(16), "16"),
      Conversion("Int32", Int32(32), "32"),
      Conversion("UInt32", UInt32.max, "4294967295"),
      Conversion("Float", Float(0.1), "0.10000000149011612"),
      Conversion("CGFloat", CGFloat(2.5), "2.5"),
      Conversion("Decimal", Decimal(string: "1.5"), "1.5"),
      Conversion("greatest double", Double.greatestFiniteMagnitude, "1.7976931348623157e+308"),
      Conversion("least double", Double.leastNonzeroMagnitude, "5e-324"),
      Conversion("as AnyObject", 5 as AnyObject, "5"),
      Conversion("true as AnyObject", true as AnyObject, "true"),
      Conversion("string as AnyObject", "s" as AnyObject, "\"s\""),
      Conversion("optional", Optional<Int>.some(3) as Any, "3"),
      Conversion("doubly optional", Optional<Int?>.some(3) as Any, "3"),
    ])
  func scalars(_ conversion: Conversion) async throws {
    try await check(conversion)
  }

  @Test(
    "what is empty is nothing",
    arguments: [
      Conversion("nil", nil, "null"),
      Conversion("NSNull", NSNull(), "null"),
      Conversion("optional without value", Optional<Int>.none as Any, "null"),
      Conversion("nested optional without value", Optional<Int?>.some(nil) as Any, "null"),
      Conversion("[:]", [String: Any](), "null"),
      Conversion("[]", [Any](), "null"),
      Conversion("NSDictionary", NSDictionary(), "null"),
      Conversion("NSArray", NSArray(), "null"),
      Conversion("nested", ["a": [String: Any](), "b": [Any](), "c": NSNull()], "null"),
      Conversion("a priority alone", [".priority": "x"], "null"),
      Conversion(".value null", [".value": NSNull()], "null"),
      Conversion(".value null with priority", [".value": NSNull(), ".priority": 1], "null"),
    ])
  func emptiness(_ conversion: Conversion) async throws {
    try await check(conversion)
  }

  @Test(
    "containers",
    arguments: [
      Conversion("[String: String]", ["a": "x"], "{a:\"x\"}"),
      Conversion("[String: Int?]", ["a": 1, "b": nil] as [String: Int?], "{a:1}"),
      Conversion("[AnyHashable: Any]", ["a": 1] as [AnyHashable: Any], "{a:1}"),
      Conversion(
        "NSDictionary", NSDictionary(dictionary: ["a": 1, "b": ["c": true]]),
        "{a:1,b:{c:true}}"),
      Conversion(
        "[String: AnyObject]", ["a": 1 as AnyObject, "b": ["x": true] as AnyObject],
        "{a:1,b:{x:true}}"),
      Conversion("[Any]", ["a", NSNull(), "c"] as [Any], "{0:\"a\",2:\"c\"}"),
      Conversion("nulls first", [NSNull(), NSNull(), "c"] as [Any], "{2:\"c\"}"),
      Conversion("empty elements", ["a", [Any](), [String: Any]()] as [Any], "{0:\"a\"}"),
      Conversion("[Int]", [1, 2], "{0:1,1:2}"),
      Conversion("[Int?]", [1, nil, 3] as [Int?], "{0:1,2:3}"),
      Conversion("NSArray", NSArray(array: [1, "b"]), "{0:1,1:\"b\"}"),
      Conversion(
        "priority in a leaf", ["x": [".value": 5, ".priority": 7]],
        "{x:{.priority:7,.value:5}}"),
      Conversion(
        "a leaf in export form", [".value": "t", ".priority": 1],
        "{.priority:1,.value:\"t\"}"),
      Conversion(
        "a branch with priority", ["a": 1, ".priority": 2.5] as [String: Any], "{.priority:2.5,a:1}"
      ),
      Conversion(".value beside children wins", [".value": 5, "a": 1], "5"),
      Conversion(".value beside a bad key wins", [".value": 5, "a.b": 1], "5"),
      Conversion("priority null", [".value": 5, ".priority": NSNull()], "5"),
      Conversion(
        "string priority", NSDictionary(dictionary: [".value": 1, ".priority": "p"]),
        "{.priority:\"p\",.value:1}"),
    ])
  func containers(_ conversion: Conversion) async throws {
    try await check(conversion)
  }

  private func check(_ conversion: Conversion) async throws {
    let ref = Database.inMemory().reference().child("place")
    try await ref.setValue("before")
    try await ref.setValue(conversion.value)
    let snapshot = try await ref.getData()
    #expect(shown(snapshot.valueInExportFormat()) == conversion.stored)
    // The export form makes the same node again.
    try await ref.parent!.child("copy").setValue(snapshot.valueInExportFormat())
    let copy = try await ref.parent!.child("copy").getData()
    #expect(shown(copy.valueInExportFormat()) == conversion.stored)
    // In a dictionary the same rules hold.
    try await ref.setValue(["in": conversion.value ?? NSNull()])
    let nested = try await ref.child("in").getData()
    #expect(shown(nested.valueInExportFormat()) == conversion.stored)
    // And in an update, in a transaction, and for going offline.
    for way in ["update", "transaction", "offline"] {
      let place = ref.parent!.child(way)
      try await place.setValue("before")
      nonisolated(unsafe) let value = conversion.value
      switch way {
      case "update": try await ref.parent!.updateChildValues([way: conversion.value ?? NSNull()])
      case "transaction": try await place.transaction { $0.value = value }
      default:
        try await place.onDisconnectSetValue(conversion.value)
        ref.database.goOffline()
      }
      let snapshot = try await place.getData()
      #expect(shown(snapshot.valueInExportFormat()) == conversion.stored, "\(way)")
    }
  }

  @Test(
    "what JSONSerialization reads keeps its type",
    arguments: [
      ("true", "true"), ("false", "false"), ("1", "1"), ("0", "0"), ("12345678901", "12345678901"),
      ("1.0", "1.0"), ("1e3", "1000.0"), ("1.5", "1.5"), ("\"1\"", "\"1\""), ("null", "null"),
    ])
  func serialized(_ json: String, _ stored: String) async throws {
    let value = try JSONSerialization.jsonObject(with: Data("{\"in\":\(json)}".utf8))
    let ref = Database.inMemory().reference()
    try await ref.setValue(value)
    #expect(shown(try await ref.child("in").getData().value) == stored)
  }

  @Test("keys that differ only in normalization stay apart in an NSDictionary's order of arrival")
  func literalKeys() async throws {
    let ref = Database.inMemory().reference()
    try await ref.child("e\u{301}").setValue(1)
    try await ref.child("\u{e9}").setValue(2)
    let snapshot = try await ref.getData()
    #expect(snapshot.childrenCount == 2)
    #expect(snapshot.map { Array($0.key.unicodeScalars).count } == [2, 1])
  }

  @Test("a priority given beside the value, and one within")
  func givenPriority() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(5, andPriority: 9)
    #expect(shown(try await ref.getData().valueInExportFormat()) == "{.priority:9,.value:5}")
    try await ref.setValue(["a": 1, ".priority": "mine"], andPriority: "given")
    #expect(shown(try await ref.getData().priority) == "\"mine\"")
    try await ref.setValue(["a": 1, ".priority": NSNull()], andPriority: "given")
    #expect(shown(try await ref.getData().priority) == "null")
    try await ref.setValue(6)
    #expect(shown(try await ref.getData().priority) == "null", "plain data clears the priority")
    // Nothing has no priority: it is not even looked at.
    try await ref.setValue(nil, andPriority: Date())
    #expect(try await ref.getData().exists() == false)
  }

  // MARK: Refusals

  static let refused: [(Conversion, String)] = [
    (Conversion("Date", Date(), ""), "InvalidFirebaseData"),
    (Conversion("Data", Data([1]), ""), "InvalidFirebaseData"),
    (Conversion("URL", URL(string: "https://x.y"), ""), "InvalidFirebaseData"),
    (Conversion("NSSet", NSSet(array: [1]), ""), "InvalidFirebaseData"),
    (Conversion("Set", Set([1]), ""), "InvalidFirebaseData"),
    (Conversion("NSObject", NSObject(), ""), "InvalidFirebaseData"),
    (Conversion("tuple", (1, 2), ""), "InvalidFirebaseData"),
    (Conversion("closure", { () -> Int in 1 }, ""), "InvalidFirebaseData"),
    (Conversion("type", Int.self, ""), "InvalidFirebaseData"),
    (Conversion("NaN", Double.nan, ""), "InvalidFirebaseData"),
    (Conversion("infinity", Double.infinity, ""), "InvalidFirebaseData"),
    (Conversion("-infinity", -Float.infinity, ""), "InvalidFirebaseData"),
    (Conversion("NSNumber NaN", NSNumber(value: Double.nan), ""), "InvalidFirebaseData"),
    (Conversion("Decimal NaN", Decimal.nan, ""), "InvalidFirebaseData"),
    (Conversion("nested NaN", ["a": ["b": Double.nan]], ""), "InvalidFirebaseData"),
    (Conversion("a.b", ["a.b": 1], ""), "InvalidFirebaseData"),
    (Conversion("a/b", ["a/b": 1], ""), "InvalidFirebaseData"),
    (Conversion("empty key", ["": 1], ""), "InvalidFirebaseData"),
    (Conversion("x$", ["a": ["x$": 1]], ""), "InvalidFirebaseData"),
    (Conversion("control character", ["a\u{1}": 1], ""), "InvalidFirebaseData"),
    (Conversion("delete character", ["a\u{7f}": 1], ""), "InvalidFirebaseData"),
    (Conversion("long key", [String(repeating: "k", count: 769): 1], ""), "InvalidFirebaseData"),
    (Conversion(".foo", [".foo": 1], ""), "InvalidFirebaseData"),
    (Conversion("non-string key", [1: "x"], ""), "InvalidFirebaseData"),
    (
      Conversion("non-string key of many", ["a": 1, 2: 2] as [AnyHashable: Any], ""),
      "InvalidFirebaseData"
    ),
    (Conversion(".value dictionary", [".value": ["a": 1]], ""), "InvalidLeafValueType"),
    (Conversion(".value array", [".value": [1]], ""), "InvalidLeafValueType"),
    (Conversion(".value Date", [".value": Date()], ""), "InvalidFirebaseData"),
    (Conversion(".sv and more", [".sv": "timestamp", "x": 1], ""), "InvalidFirebaseData"),
    (
      Conversion(".sv and priority", [".sv": "timestamp", ".priority": 1], ""),
      "InvalidFirebaseData"
    ),
    (Conversion(".sv unknown", [".sv": "clock"], ""), "InvalidFirebaseData"),
    (Conversion(".sv number", [".sv": 1], ""), "InvalidFirebaseData"),
    (Conversion("increment by string", [".sv": ["increment": "1"]], ""), "InvalidFirebaseData"),
    (Conversion("increment by bool", [".sv": ["increment": true]], ""), "InvalidFirebaseData"),
    (Conversion("increment by NaN", ServerValue.increment(Double.nan), ""), "InvalidFirebaseData"),
    (Conversion("boolean priority", [".value": 1, ".priority": true], ""), "InvalidFirebaseData"),
    (Conversion("array priority", [".value": 1, ".priority": [1]], ""), "InvalidFirebaseData"),
    (
      Conversion("NaN priority", [".value": 1, ".priority": Double.nan], ""), "InvalidFirebaseData"
    ),
    (Conversion("Date priority", [".value": 1, ".priority": Date()], ""), "InvalidFirebaseData"),
    (
      Conversion("long string", String(repeating: "s", count: 10 * 1024 * 1024 + 1), ""),
      "InvalidFirebaseData"
    ),
  ]

  @Test("bad values are refused and change nothing", arguments: refused)
  func refusals(_ conversion: Conversion, _ name: String) async throws {
    let ref = Database.inMemory().reference().child("place")
    try await ref.setValue("before")
    let error = await failure { try await ref.setValue(conversion.value) }
    #expect(error?.name == name)
    #expect(await failure { try await ref.setValue(["x": conversion.value as Any]) }?.name == name)
    #expect(
      await failure { try await ref.updateChildValues(["x": conversion.value as Any]) }?.name
        == name)
    #expect(await failure { try await ref.onDisconnectSetValue(conversion.value) }?.name == name)
    nonisolated(unsafe) let value = conversion.value
    #expect(await failure { try await ref.transaction { $0.value = value } }?.name == name)
    #expect(try await ref.getData().string == "before")
  }

  @Test("a string of exactly the limit is taken")
  func longestString() async throws {
    let ref = Database.inMemory().reference().child("s")
    let longest = String(repeating: "s", count: 10 * 1024 * 1024)
    try await ref.setValue(longest)
    #expect(try await ref.getData().string == longest)
  }

  @Test("32 levels are taken, 33 are not; pseudo keys do not count", arguments: 0...4)
  func depth(above: Int) async throws {
    let path = (0..<above).map { "p\($0)" }.joined(separator: "/")
    let ref = Database.inMemory().reference().child(path.isEmpty ? "/" : path)
    func nested(_ depth: Int, _ leaf: Any) -> Any {
      (0..<depth).reduce(leaf) { value, _ in ["k": value] }
    }
    try await ref.setValue(nested(32 - above, 1))
    try await ref.setValue(nested(32 - above, [".value": 1, ".priority": 2]))
    try await ref.setValue(nested(32 - above, ServerValue.timestamp()))
    #expect(await failure { try await ref.setValue(nested(33 - above, 1)) }?.code == .invalidData)
  }

  @Test("data far deeper than the limit is refused before it is gone through")
  func bottomless() async throws {
    let ref = Database.inMemory().reference()
    let dictionary: Any = (0..<1000).reduce(1 as Any) { value, _ in ["k": value] }
    #expect(await failure { try await ref.setValue(dictionary) }?.code == .invalidData)
    let array: Any = (0..<1000).reduce(1 as Any) { value, _ in [value] }
    #expect(await failure { try await ref.setValue(array) }?.code == .invalidData)
  }
}
