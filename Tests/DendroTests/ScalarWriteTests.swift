import Dendro
import DendroTestSupport
import DendroTree
import Foundation
import Testing

/// Writes of scalars whose type the compiler knows, and increments.
@Suite("Writes of known types")
struct ScalarWriteTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  @Test("each type is stored as the same value in an Any is")
  func sameAsAny() async throws {
    let ref = root.child("typed")
    let other = root.child("any")
    for value in ["", "text", String(repeating: "long", count: 300)] {
      try await ref.setValue(value)
      try await other.setValue(value as Any)
      #expect(try await ref.getData().node == other.getData().node)
    }
    for value in [0, 1, -1, Int.max, Int.min] {
      try await ref.setValue(value)
      try await other.setValue(value as Any)
      #expect(try await ref.getData().node.isIdentical(to: other.getData().node))
    }
    for value in [0, 1.5, -0.0, Double.greatestFiniteMagnitude] {
      try await ref.setValue(value)
      try await other.setValue(value as Any)
      #expect(try await ref.getData().node.isIdentical(to: other.getData().node))
    }
    for value in [true, false] {
      try await ref.setValue(value)
      try await other.setValue(value as Any)
      #expect(try await ref.getData().node.isIdentical(to: other.getData().node))
    }
  }

  @Test("without waiting: shown at once, and priorities are replaced")
  func atOnce() async throws {
    try await root.child("a").setValue(1 as Any, andPriority: 5)
    plainly {
      root.child("a").setValue("text")
      root.child("b").setValue(2)
      root.child("c").setValue(2.5)
      root.child("d").setValue(true)
    }
    let shown = try await root.getData()
    #expect(shown["a"].string == "text" && shown["a"].priority is NSNull)
    #expect(shown["b"].int == 2 && shown["c"].double == 2.5 && shown["d"].bool == true)
  }

  @Test("what cannot be stored is refused, as in an Any")
  func refused() async throws {
    let long = String(repeating: "x", count: 10 << 20 + 1)
    #expect(await failure { try await root.setValue(Double.nan) }?.code == .invalidData)
    #expect(await failure { try await root.setValue(-Double.infinity) }?.code == .invalidData)
    #expect(await failure { try await root.setValue(long) }?.code == .invalidData)
    #expect(await failure { try await root.increment(by: Double.nan) }?.code == .invalidData)
    #expect(await failure { try await root.child("#").setValue(1) }?.code == .invalidPath)
    #expect(await failure { try await root.child("#").increment(by: 1) }?.code == .invalidPath)
    let info = database.reference(withPath: ".info/x")
    #expect(await failure { try await info.setValue("a") }?.code == .notWritable)
    #expect(await failure { try await info.increment(by: 1) }?.code == .notWritable)
    #expect(try await !root.getData().exists())
  }

  @Test("increments: in every form, as the server value does")
  func increments() async throws {
    let count = root.child("count")
    let other = root.child("other")
    plainly { count.increment(by: 2) }
    try await count.increment(by: -5)
    await withCheckedContinuation { continuation in
      count.increment(by: 10) { error, ref in
        #expect(error == nil && ref.key == "count")
        continuation.resume()
      }
    }
    #expect(try await count.getData().int == 7)
    await withCheckedContinuation { continuation in
      count.increment(by: 0.5) { _, _ in continuation.resume() }
    }
    plainly { count.increment(by: 0.25) }
    #expect(try await count.getData().double == 7.75)
    for existing: Any in ["text", true, ["a": 1], Int.max, 1.5] {
      for delta in [1, Int.max] {
        for ref in [count, other] { try await ref.setValue(existing, andPriority: 3) }
        try await count.increment(by: delta)
        try await other.setValue(ServerValue.increment(delta))
        let (own, expected) = (try await count.getData().node, try await other.getData().node)
        #expect(own.isIdentical(to: expected), "\(existing) + \(delta)")
      }
    }
    try await count.removeValue()
    try await count.increment(by: 1.5)
    #expect(try await count.getData().double == 1.5)
  }
}
