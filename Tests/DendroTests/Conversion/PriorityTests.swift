import Dendro
import Foundation
import Testing

/// What may be a priority, by every way in.
@Suite("Priorities")
struct PriorityTests {
  /// A priority and how the export form shows it; nil if it is refused.
  struct Row: CustomTestStringConvertible, @unchecked Sendable {
    let name: String
    let priority: Any?
    let shown: String?

    init(_ name: String, _ priority: Any?, _ shown: String?) {
      (self.name, self.priority, self.shown) = (name, priority, shown)
    }

    var testDescription: String { "\(name): \(shown ?? "refused")" }
  }

  static let rows = [
    Row("nil", nil, "null"), Row("NSNull", NSNull(), "null"),
    Row("an optional without value", Optional<Int>.none as Any, "null"),
    Row("an integer", 5, "5"), Row("a negative one", -5, "-5"), Row("a double", 2.5, "2.5"),
    Row("an NSNumber", NSNumber(value: 7), "7"), Row("a string", "p", "\"p\""),
    Row("an empty string", "", "\"\""), Row("an NSString", NSString("n"), "\"n\""),
    // The place has the priority 3 before.
    Row("an increment", ServerValue.increment(2), "5"),
    Row("true", true, nil), Row("false", false, nil),
    Row("an NSNumber of a boolean", NSNumber(value: true), nil),
    Row("an array", [1], nil), Row("an empty array", [Any](), nil),
    Row("a dictionary", ["a": 1], nil), Row("NaN", Double.nan, nil),
    Row("an infinity", Double.infinity, nil), Row("a date", Date(), nil),
    Row("a server value of no kind", [".sv": "now"], nil),
  ]

  static let ways = [
    "setValue(_:andPriority:)", "setValue, .priority within", "setPriority", "an update's path",
    "within an update", "a transaction's priority", "a transaction's value", "onDisconnect",
    "onDisconnect, .priority within",
  ]

  @Test("numbers, strings and server values are taken, all else is refused", arguments: rows, ways)
  func table(_ row: Row, _ way: String) async throws {
    let database = Database.inMemory()
    let ref = database.reference().child("p")
    try await ref.setValue(1, andPriority: 3)
    let priority = row.priority
    let inDictionary: [String: Any] = [".value": 1, ".priority": row.priority ?? NSNull()]
    nonisolated(unsafe) let given = priority
    nonisolated(unsafe) let within = inDictionary
    let error = await failure {
      switch way {
      case "setValue(_:andPriority:)": try await ref.setValue(1, andPriority: priority)
      case "setValue, .priority within": try await ref.setValue(inDictionary)
      case "setPriority": try await ref.setPriority(priority)
      case "an update's path":
        try await ref.parent!.updateChildValues(["p/.priority": priority ?? NSNull()])
      case "within an update": try await ref.parent!.updateChildValues(["p": inDictionary])
      case "a transaction's priority":
        try await ref.runTransactionBlock { data in
          data.priority = given
          return .success(withValue: data)
        }
      case "a transaction's value":
        try await ref.runTransactionBlock { data in
          data.value = within
          return .success(withValue: data)
        }
      case "onDisconnect": try await ref.onDisconnectSetValue(1, andPriority: priority)
      default: try await ref.onDisconnectSetValue(inDictionary)
      }
    }
    database.goOffline()
    if let shown = row.shown {
      #expect(error == nil)
      #expect(DendroTests.shown(try await ref.getData().priority) == shown)
    } else {
      #expect(error?.name == "InvalidFirebaseData")
      #expect(shown(try await ref.getData().priority) == "3")
    }
  }

  @Test("nothing has no priority, a leaf and a branch may have one")
  func kinds() async throws {
    let ref = Database.inMemory().reference().child("p")
    for priority in [nil, 1, 1.5, "x"] as [Any?] {
      let expected = shown(priority ?? NSNull())
      for value in [true, 1, "text", ["a": 1]] as [Any] {
        try await ref.setValue(value, andPriority: priority)
        #expect(shown(try await ref.getData().priority) == expected)
        #expect(shown(try await ref.getData().value) == shown(value))
      }
      try await ref.setValue(nil, andPriority: priority)
      #expect(try await ref.getData().priority is NSNull)
    }
  }

  @Test(
    "the last child takes its parents' priorities with it; a leaf's stays as it becomes a branch")
  func lastChild() async throws {
    let root = Database.inMemory().reference()
    try await root.setValue([".value": 5, ".priority": 9])
    try await root.child("a").setValue(1)
    #expect(shown(try await root.getData().valueInExportFormat()) == "{.priority:9,a:1}")
    try await root.child("a").setValue(nil)
    #expect(try await !root.getData().exists())
    try await root.setValue(7)
    #expect(try await root.getData().priority is NSNull)
  }
}
