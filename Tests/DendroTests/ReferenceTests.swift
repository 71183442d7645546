import Dendro
import DendroTestSupport
import Foundation
import Testing

@Suite("References")
struct ReferenceTests {
  let database = Database.inMemory()
  var root: DatabaseReference { database.reference() }

  @Test(
    "paths are split at slashes; empty segments are dropped",
    arguments: [
      ("a", "a", "/a"), ("a/b", "b", "/a/b"), ("////a///b//", "b", "/a/b"), ("/", "", ""),
      ("a%20b", "a%20b", "/a%2520b"),
      ("50% off/x y:1/ü~&", "ü~&", "/50%25%20off/x%20y%3A1/%C3%BC~%26"),
      ("😀", "😀", "/%F0%9F%98%80"), ("\u{a0}", "\u{a0}", "/%C2%A0"),
    ])
  func paths(_ path: String, _ key: String, _ url: String) {
    let ref = root.child(path)
    #expect(ref.key ?? "" == key)
    #expect(ref.url == root.url + url)
    #expect(ref.description() == ref.url)
    #expect("\(ref)" == ref.url)
    #expect(database.reference(withPath: path) == ref)
  }

  @Test("root, parent, key")
  func family() {
    let ref = root.child("users").child("ada/name")
    #expect(ref.key == "name")
    #expect(ref.parent?.key == "ada")
    #expect(ref.parent?.parent?.parent == root)
    #expect(root.parent == nil)
    #expect(root.key == nil)
    #expect(ref.root == root)
    #expect(ref.database === database)
    #expect(ref.ref === ref)
    #expect(root.child("/") == root)
  }

  @Test("equal by place")
  func equality() {
    #expect(root.child("a/b") == root.child("a").child("b"))
    #expect(root.child("a") != root.child("b"))
    #expect(root.child("e\u{301}") != root.child("\u{e9}"), "keys are literal")
    #expect(Set([root.child("a"), root.child("/a/")]).count == 1)
    #expect(root != Database.inMemory().reference())
  }

  static let badPaths = [
    "", ".", "a.b", "a/.b", "#", "a$", "[", "a]b", "a/\u{0}", "\u{1f}", "\u{7f}",
    String(repeating: "k", count: 769), ".info/connected",
  ]

  @Test("a bad path carries its error to every operation", arguments: badPaths)
  func bad(_ path: String) async throws {
    try await root.setValue(["kept": 1])
    let ref = root.child(path)
    let name = path.utf8.count > 768 ? "InvalidKeyValidation" : "InvalidPathValidation"
    func check(_ error: DatabaseError?, line: Int = #line) {
      #expect(["InvalidPathValidation", name].contains(error?.name), "line \(line)")
      #expect(error?.message.isEmpty == false)
    }
    check(await failure { try await ref.setValue(1) })
    check(await failure { try await ref.setValue(1, andPriority: 2) })
    check(await failure { try await ref.setValue(nil) })
    check(await failure { try await ref.removeValue() })
    check(await failure { try await ref.setPriority(1) })
    check(await failure { try await ref.updateChildValues(["a": 1]) })
    check(await failure { _ = try await ref.getData() })
    check(await failure { try await ref.child("below").setValue(1) })
    check(await failure { try await (ref.parent ?? ref).setValue(1) })
    check(await failure { try await ref.childByAutoId().setValue(1) })
    check(await failure { try await ref.child("first.error.stays").setValue(1) })

    let (completion, same) = await withCheckedContinuation { continuation in
      ref.setValue(1) { continuation.resume(returning: ($0 as? DatabaseError, $1)) }
    }
    check(completion)
    #expect(same === ref)
    let read = await withCheckedContinuation { continuation in
      ref.getData { continuation.resume(returning: ($0 as? DatabaseError, $1)) }
    }
    check(read.0)
    #expect(!read.1.exists())
    let cancelled = await withCheckedContinuation { continuation in
      _ = ref.observe(
        .value, with: { _ in Issue.record("an event for a bad path") },
        withCancel: { continuation.resume(returning: $0 as? DatabaseError) })
    }
    check(cancelled)
    let (nothing, previous) = await ref.observeSingleEventAndPreviousSiblingKey(of: .childAdded)
    #expect(!nothing.exists() && previous == nil)
    ref.removeAllObservers()
    ref.removeObserver(withHandle: 0)
    #expect(shown(try await root.getData().value) == "{kept:1}")
  }

  @Test("a key of 768 bytes is taken, a character more is not")
  func keyLength() async throws {
    try await root.child(String(repeating: "k", count: 768)).setValue(1)
    try await root.child(String(repeating: "é", count: 384)).setValue(1)
    #expect(
      await failure { try await root.child(String(repeating: "é", count: 385)).setValue(1) } != nil)
    try await root.child("\u{e9}\u{80}").setValue(1)
  }

  @Test("paths deeper than 32 are refused when written")
  func depth() async throws {
    let deep = (1...32).map { "\($0)" }.joined(separator: "/")
    try await root.child(deep).setValue(1)
    #expect(
      await failure { try await root.child(deep).child("x").setValue(1) }?.code == .invalidData)
    #expect(await failure { try await root.child(deep).setValue(["x": 1]) }?.code == .invalidData)
    #expect(await failure { try await root.child(deep).updateChildValues(["x": 1]) } != nil)
    #expect(try await root.child(deep).child("x").getData().exists() == false)
  }

  @Test(
    "whatever the string, it is a location or an error, and nothing in between", arguments: 0..<20)
  func hostile(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    func random(_ bound: Int) -> Int { generator.below(bound) }
    let pieces = [
      "a", "/", "//", ".", "#", "$", "[", "]", "\u{0}", "\u{1f}", "\u{7f}", "é", "e\u{301}", "😀",
      "\u{fffd}", "\u{10ffff}", "-", "0", "00", "2147483647", "-2147483648", ".priority", ".value",
      ".sv", ".info", " ", "%2F", "+", "\u{202e}", String(repeating: "k", count: 300),
    ]
    for _ in 0..<300 {
      let path = (0..<random(6)).map { _ in pieces[random(pieces.count)] }.joined()
      let ref = root.child(path)
      let error = await failure { try await ref.setValue(["v": path]) }
      if error == nil {
        #expect(try await ref.getData()["v"].string.map { Array($0.utf8) } == Array(path.utf8))
        #expect(try await root.getData().hasChild(path), "seed \(seed): \(path.debugDescription)")
      } else {
        #expect(try await root.getData().hasChild(path) == false || path.hasSuffix("/"))
      }
      _ = await failure { try await root.updateChildValues([path: 1]) }
      _ = await failure { try await root.setValue([path: [".priority": path, ".value": path]]) }
      try await root.setValue(nil)
      _ = (ref.key, ref.url, ref.parent, ref == root)
    }
  }

  @Test("push ids ascend, and write nothing")
  func pushIDs() async throws {
    let keys = (0..<10_000).map { _ in root.childByAutoId().key! }
    #expect(keys.allSatisfy { $0.utf8.count == 20 })
    #expect(
      zip(keys, keys.dropFirst()).allSatisfy {
        Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8))
      })
    #expect(try await root.getData().exists() == false)
    let concurrent = await withTaskGroup(of: [String].self) { group in
      for _ in 0..<8 {
        group.addTask { (0..<1000).map { _ in self.root.childByAutoId().key! } }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(Set(concurrent).count == 8000)
    // One generator for the process: in order over databases too.
    let other = Database.inMemory().reference()
    let both = (0..<100).flatMap { _ in [root.childByAutoId().key!, other.childByAutoId().key!] }
    #expect(
      zip(both, both.dropFirst()).allSatisfy {
        Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8))
      })
  }
}
