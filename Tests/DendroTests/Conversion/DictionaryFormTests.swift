import Dendro
import Foundation
import Testing

/// The same object in every form that a dictionary can have: those of one usual type go a shorter way.
@Suite struct DictionaryFormTests {
  private struct Object: CustomTestStringConvertible, @unchecked Sendable {
    let testDescription: String
    let forms: [Any]

    init<Value>(_ name: String, _ content: [String: Value]) {
      testDescription = name
      let anything = content.mapValues { $0 as Any }
      let keys = anything.keys.map { $0 as NSString }
      let objects = anything.values.map { value -> Any in
        switch value {
        case let text as String where type(of: value) == String.self: text as NSString
        case let number as Int where type(of: value) == Int.self: NSNumber(value: number)
        case let number as Double where type(of: value) == Double.self: NSNumber(value: number)
        case let truth as Bool where type(of: value) == Bool.self: NSNumber(value: truth)
        default: value
        }
      }
      forms = [
        content, anything, anything as [AnyHashable: Any],
        NSDictionary(objects: objects, forKeys: keys), content.mapValues { Optional($0) },
      ]
    }
  }

  private static let objects: [Object] = [
    Object(
      "strings of every length around a change of form",
      Dictionary(
        uniqueKeysWithValues: [0, 1, 15, 16, 125, 126, 127, 215, 216, 217, 5_000].map {
          (
            "length\($0)",
            String(repeating: "é", count: $0 / 2) + String(repeating: "x", count: $0 % 2)
          )
        })),
    Object("integers", ["least": Int.min, "most": Int.max, "zero": 0, "-7": -7]),
    Object("doubles", ["0": 0.5, "1": -0.0, "2": .greatestFiniteMagnitude, "3": 1e-300]),
    Object("booleans", ["yes": true, "no": false]),
    Object(
      "keys of every kind",
      ["0": "a", "007": "b", "-5": "c", "2147483648": "d", "é": "e", "😀": "f", "\u{E000}": "g"]
        .merging([String(repeating: "k", count: 768): "h"]) { $1 }),
    Object("many fields", Dictionary(uniqueKeysWithValues: (0..<300).map { ("field\($0)", $0) })),
    Object("none", [String: String]()),
    Object("a priority", [".priority": "low", "a": "b"]),
    Object("a value with a priority", [".priority": 2, ".value": 1]),
    Object("an illegal key", ["a.b": "c"]),
    Object("an empty key", ["": "c"]),
    Object("a key that is too long", [String(repeating: "k", count: 769): 1]),
    Object("infinity", ["a": Double.infinity]),
    Object("a string that is too long", ["a": String(repeating: "x", count: 10 << 20 | 1)]),
  ]

  /// What is stored then, or the error.
  private func outcome(_ form: Any, depth: Int) async throws -> String {
    let place = (0..<depth).map { "p\($0)" }.joined(separator: "/")
    let reference = Database.inMemory().reference(withPath: place)
    if let error = await failure({ try await reference.setValue(form) }) {
      // Of several fields that are too deep, any one may be named.
      return error.message.hasSuffix("deeper than 32 levels")
        ? "too deep" : "\(error.code): \(error.message)"
    }
    return shown(try await reference.getData().valueInExportFormat())
  }

  @Test("all mean the same, and are refused in the same words", arguments: Self.objects.indices)
  func forms(_ index: Int) async throws {
    let object = Self.objects[index]
    for depth in [1, 31, 32] {
      let expected = try await outcome(object.forms[0], depth: depth)
      for (number, form) in object.forms.enumerated().dropFirst() {
        let reached = try await outcome(form, depth: depth)
        #expect(
          reached == expected, "\(object.testDescription), form \(number), \(depth) levels deep")
      }
    }
  }
}
