import Dendro
import Foundation
import Testing

@Suite("Snapshots")
struct SnapshotTests {
  let root = Database.inMemory().reference()

  @Test("content and place")
  func content() async throws {
    try await root.child("p").setValue(["a": ["b": 1], "c": "x"])
    let snapshot = try await root.child("p").getData()
    #expect(snapshot.key == "p")
    #expect(snapshot.ref == root.child("p"))
    #expect(snapshot.exists() && snapshot.hasChildren())
    #expect(snapshot.childrenCount == 2)
    #expect(snapshot.hasChild("a/b") && !snapshot.hasChild("a/c") && !snapshot.hasChild("c/d"))
    #expect(snapshot.priority is NSNull)
    let child = snapshot.childSnapshot(forPath: "a/b")
    #expect(child.key == "b" && child.int == 1 && child.ref == root.child("p/a/b"))
    #expect(!child.hasChildren() && child.childrenCount == 0)
    let missing = snapshot.childSnapshot(forPath: "x/y")
    #expect(missing.key == "y" && !missing.exists() && missing.value is NSNull)
    #expect(snapshot["/"].childrenCount == 2)
    #expect(try await root.getData().key == "")
    #expect("\(snapshot)".contains("p"))
  }

  @Test("children of children know their places, however they were reached")
  func places() async throws {
    try await root.child("p").setValue(["a": ["b": ["c": 1]], "long key of a child": ["b": 2]])
    for place in ["p", "/"] {
      let snapshot = try await root.child(place).getData()
      let start = root.child(place)
      for child in snapshot {
        let ref = start.child(child.key)
        #expect(child.ref == ref && child.ref.key == child.key)
        #expect(child["/"].ref == ref && child["/"].key == child.key)
        for path in ["b", "/a//b/", "no/b", "b/c"] {
          let below = child[path]
          #expect(below.ref == ref.child(path) && below.key == ref.child(path).key)
          #expect(below.childSnapshot(forPath: "c").ref == ref.child(path).child("c"))
          #expect(below.map(\.ref) == below.map { ref.child(path).child($0.key) })
          let bad = below["x.y"]
          #expect(!bad.exists() && bad["z"].ref != below["z"].ref)
          let error = await failure { try await bad["z"].ref.setValue(1) }
          #expect(error?.code == .invalidPath)
        }
      }
    }
  }

  @Test("it keeps what was there")
  func immutable() async throws {
    try await root.setValue(["a": 1])
    let before = try await root.getData()
    try await root.setValue(["b": 2])
    #expect(shown(before.value) == "{a:1}")
    try await root.database.close()
    #expect(shown(before.value) == "{a:1}")
    #expect(before.map(\.key) == ["a"])
  }

  @Test(
    "children come in the order of keys",
    arguments: [
      ("10 9 1a a -3 007 7", "-3 7 007 9 10 1a a"),
      (
        "b 10 -3 007 7 07 0 -0 2147483648 1e3 +1 z Z 😀 Ａ é",
        "-3 0 -0 7 07 007 10 +1 1e3 2147483648 Z b z é 😀 Ａ"
      ),
      ("\u{10000} \u{e000} é e\u{301} z", "e\u{301} z é \u{10000} \u{e000}"),
    ])
  func keyOrder(_ keys: String, _ order: String) async throws {
    for key in keys.split(separator: " ") { try await root.child(String(key)).setValue(1) }
    let snapshot = try await root.getData()
    #expect(
      snapshot.map { Array($0.key.utf8) } == order.split(separator: " ").map { Array($0.utf8) })
    #expect((snapshot.children.allObjects as? [DataSnapshot])?.map(\.key) == snapshot.map(\.key))
    var seen: [String] = []
    for case let child as DataSnapshot in snapshot.children { seen.append(child.key) }
    #expect(seen == snapshot.map(\.key))
  }

  @Test("children come by priority first: none, numbers, strings")
  func priorityOrder() async throws {
    for (key, priority) in [
      ("a", nil), ("f", nil), ("e", -2), ("b", 5), ("d", "a"), ("c", "b"),
    ] as [(String, Any?)] {
      try await root.child(key).setValue(1, andPriority: priority)
    }
    #expect(try await root.getData().map(\.key) == ["a", "f", "e", "b", "d", "c"])
    #expect(try await root.child("d").getData().priority as? String == "a")
  }

  @Test(
    "paths that cannot be are nothing, and their reference carries the error",
    arguments: ["", "a.b", "#"])
  func badPaths(_ path: String) async throws {
    try await root.setValue(["a": 1])
    let snapshot = try await root.getData()
    #expect(!snapshot.hasChild(path))
    #expect(!snapshot.childSnapshot(forPath: path).exists())
    let error = await failure { try await snapshot.childSnapshot(forPath: path).ref.setValue(1) }
    #expect(error?.code == .invalidPath)
  }
}
