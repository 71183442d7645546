import Dendro
import Foundation
import Testing

extension MutableDataTests {
  // MARK: Bad input

  struct Bad: Sendable, CustomTestStringConvertible {
    let name: String
    let body: @Sendable (MutableData) -> Void
    let code: DatabaseError.Code
    /// What the message says.
    let part: String
    var testDescription: String { name }

    init(
      _ name: String, _ code: DatabaseError.Code, _ part: String,
      _ body: @escaping @Sendable (MutableData) -> Void
    ) {
      self.name = name
      self.code = code
      self.part = part
      self.body = body
    }
  }

  static let bad: [Bad] = [
    Bad("a date", .invalidData, "Date") { $0.value = Date() },
    Bad("a value at a place", .invalidData, "/a/b") {
      $0.childData(byAppendingPath: "a/b").value = Date()
    },
    Bad("not a number", .invalidData, "nan") { $0.value = Double.nan },
    Bad("a key", .invalidData, "a.b") { $0.value = ["a.b": 1] },
    Bad("a container as leaf", .invalidLeafValueType, ".value") { $0.value = [".value": [1]] },
    Bad("a server value of no kind", .invalidData, "server value") { $0.value = [".sv": "now"] },
    Bad("a boolean as priority", .invalidData, "priority") { $0.priority = true },
    Bad("an array as priority", .invalidData, "priority") { $0.priority = [1] },
    Bad("a bad priority of nothing", .invalidData, "priority") {
      $0.childData(byAppendingPath: "none").priority = true
    },
    Bad("a path", .invalidPath, "a.b") { _ = $0.childData(byAppendingPath: "a.b") },
    Bad("an empty path", .invalidPath, "empty") { _ = $0.childData(byAppendingPath: "") },
    Bad("asking for a path", .invalidPath, "x#") { #expect(!$0.hasChild(atPath: "x#")) },
    Bad("what a bad path gives holds and keeps nothing", .invalidPath, "[") { data in
      let none = data.childData(byAppendingPath: "[")
      none.value = 1
      none.priority = 1
      #expect(none.value is NSNull && none.priority is NSNull && none.key == nil)
      #expect(!none.hasChildren() && none.childrenCount == 0 && !none.hasChild(atPath: "a"))
      #expect(none.children.nextObject() == nil)
      #expect(none.childData(byAppendingPath: "a").value is NSNull)
    },
    Bad("too deep a place", .invalidData, "32 levels") {
      $0.childData(byAppendingPath: Array(repeating: "a", count: 32).joined(separator: "/")).value =
        1
    },
    Bad("far too deep a place", .invalidData, "32 levels") {
      let path = Array(repeating: "a", count: 100_000).joined(separator: "/")
      $0.childData(byAppendingPath: path).value = 1
    },
    Bad("too deep a value", .invalidData, "32 levels") { data in
      var value: Any = 1
      for _ in 0..<32 { value = ["a": value] }
      data.value = value
    },
    Bad("the first of two", .invalidData, "Date") { data in
      data.value = Date()
      _ = data.childData(byAppendingPath: "")
    },
  ]

  @Test("what cannot be used changes nothing, and the transaction fails with it", arguments: bad)
  func refused(_ example: Bad) async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(["kept": 1])
    for ending in ["success", "abort", "return"] {
      let error = await failure {
        if ending == "return" {
          try await ref.transaction { example.body($0) }
        } else {
          try await ref.runTransactionBlock { data in
            example.body(data)
            #expect(shown(data.value) == "{kept:1}")
            data.childData(byAppendingPath: "other").value = 2
            return ending == "abort" ? .abort() : .success(withValue: data)
          }
        }
      }
      #expect(error?.code == example.code, "\(ending)")
      #expect(error?.message.contains(example.part) == true, "\(ending): \(error?.message ?? "")")
      #expect(shown(try await ref.getData().value) == "{kept:1}", "\(ending)")
    }
  }

  @Test("the deepest place that is allowed")
  func deepest() async throws {
    let root = Database.inMemory().reference()
    let ref = root.child("p")
    let path = Array(repeating: "a", count: 31).joined(separator: "/")
    try await ref.transaction { $0.childData(byAppendingPath: path).value = 1 }
    #expect(try await ref.child(path).getData().int == 1)
  }

  // MARK: Handing on

  @Test("what is handed to success is what is written")
  func handing() async throws {
    let ref = Database.inMemory().reference().child("p")
    try await ref.setValue(["a": ["b": 1], "c": 2])
    let (_, part) = try await ref.runTransactionBlock { data in
      let a = data.childData(byAppendingPath: "a")
      a.childData(byAppendingPath: "at").value = ServerValue.timestamp()
      return .success(withValue: a)
    }
    #expect(part["b"].int == 1 && part["at"].int ?? 0 > 0 && part.childrenCount == 2)
    let (committed, nothing) = try await ref.runTransactionBlock { data in
      .success(withValue: data.childData(byAppendingPath: "none"))
    }
    #expect(committed && !nothing.exists())
  }

  @Test("data of another run are what they were, and are checked against the place")
  func foreign() async throws {
    let root = Database.inMemory().reference()
    nonisolated(unsafe) var kept: MutableData?
    let deep = Array(repeating: "a", count: 31).joined(separator: "/")
    try await root.runTransactionBlock { data in
      data.childData(byAppendingPath: deep).value = 1
      kept = data
      return .abort()
    }
    let error = await failure {
      try await root.child("x/y").runTransactionBlock { _ in .success(withValue: kept!) }
    }
    #expect(error?.code == .invalidData)
    kept!.value = 7
    let (_, snapshot) = try await root.child("x/y").runTransactionBlock { _ in
      .success(withValue: kept!)
    }
    #expect(snapshot.int == 7)
    kept!.value = 8
    #expect(shown(try await root.getData().value) == "{x:{y:7}}")
  }
}
