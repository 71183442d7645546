import DendroTestSupport
import Testing

@testable import DendroTree

@Suite("Writes that are kept")
struct KeptWriteTests {
  private func resolved(_ write: EncodedWrite, against root: Node) -> Node {
    root.applying(write, time: 1_000)
  }

  @Test("come back as they were", arguments: 0..<UInt64(60))
  func roundTrip(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    var root = Node.empty
    for _ in 0..<20 {
      let write = EncodedWrite(generator.write())
      let kept = try #require(Node(keeping: write).keptWrite)
      let expected = resolved(write, against: root)
      #expect(resolved(kept, against: root) == expected, "seed \(seed)")
      root = expected
    }
  }

  private var serverValues: Draft {
    get throws {
      var tree = Node.empty
      for (path, scalar) in [("a/t", Scalar.integer(0)), ("a/n", .integer(0)), ("b", .string("x"))]
      {
        tree.graft(Node(scalar), at: try Path(parsing: path))
      }
      tree.graft(
        Node(.string("y"), priority: .integer(0)), at: try Path(parsing: "c"))
      return Draft(
        .set(try Path(parsing: "p/q"), tree),
        deferred: [
          .init(path: try Path(parsing: "a/t"), value: .timestamp),
          .init(path: try Path(parsing: "a/n"), value: .increment(.double(1.5))),
          .init(path: try Path(parsing: "c"), isPriority: true, value: .timestamp),
        ])
    }
  }

  @Test("keep their server values for the moment when they are made")
  func keepsServerValues() throws {
    let kept = try #require(Node(keeping: EncodedWrite(try serverValues)).keptWrite)
    #expect(kept.facts.hasServerValues)
    var root = Node.empty
    root.graft(Node(.integer(2)), at: try Path(parsing: "p/q/a/n"))
    let result = resolved(kept, against: root)
    #expect(result.node(at: try Path(parsing: "p/q/a/t")).scalar == .integer(1_000))
    #expect(result.node(at: try Path(parsing: "p/q/a/n")).scalar == .double(3.5))
    #expect(result.node(at: try Path(parsing: "p/q/c")).priority == .integer(1_000))
  }

  @Test("one that is longer than a leaf may be is kept in several")
  func long() throws {
    let text = String(repeating: "0123456789", count: Limits.stringBytes / 10)
    var tree = Node.empty
    for key in ["a", "b"] { tree.graft(Node(.string(text)), at: try Path(parsing: key)) }
    let node = Node(keeping: EncodedWrite(.set(.root, tree)))
    #expect(node.childCount == 3)
    let kept = try #require(node.keptWrite)
    #expect(resolved(kept, against: .empty) == tree)
  }

  @Test("whatever the bytes are, they are a write or none; cut short they are none")
  func hostile() throws {
    let bytes = EncodedWrite(try serverValues).keptBytes
    for end in 0..<bytes.count { #expect(EncodedWrite(kept: Array(bytes[..<end])) == nil) }
    for index in bytes.indices {
      for bit in 0..<8 {
        var bytes = bytes
        bytes[index] ^= 1 << bit
        if let write = EncodedWrite(kept: bytes) {
          try resolved(write, against: .empty).checkInvariants()
        }
      }
    }
    #expect(EncodedWrite(kept: bytes + [0]) == nil)
  }

  @Test("a leaf of bytes is a value of its own")
  func bytes() throws {
    for count in [0, 1, 126, 127, 128, 300, 70_000] {
      let value = Scalar.bytes((0..<count).map { UInt8(truncatingIfNeeded: $0) })
      var tree = Node.empty
      tree.graft(Node(value), at: try Path(parsing: "a/b"))
      tree.graft(Node(.integer(1)), at: try Path(parsing: "a/c"))
      #expect(tree.node(at: try Path(parsing: "a/b")).scalar == value)
      try tree.checkInvariants()
      #expect(Node(value) != Node(.string("")))
    }
  }
}
