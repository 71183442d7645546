import DendroTestSupport
import Testing

@testable import DendroTree

/// Edits that begin at the sibling of the last one: the same tree as by `apply`, whatever comes between.
@Suite struct LeafCursorTests {
  /// One database's branches: of several depths, one with a long path, one with many children.
  private static let branches = [
    "", "a", "posts/first", "posts/second", "posts/third/deep/er", "list",
    String(repeating: "x", count: 120),
  ]

  @Test(
    "runs of edits in one branch, beside copies and other writes",
    arguments: Scale.seeds(12))
  func differential(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keyCount = [4, 40, 2_000][Int(seed % 3)]
    let valueByteCountMax = [10, 80, 260][Int(seed / 3 % 3)]
    var node = Node.empty
    var other = Node.empty
    var cursor = LeafCursor()
    var held: [(node: Node, text: String)] = []
    var siblingCount = 0
    var declinedCount = 0
    for step in 0..<500 {
      let branch = Self.branches[random.below(Self.branches.count)]
      for _ in 0..<1 + random.below(12) {
        let path = try Path(
          parsing: "\(branch)/k\(random.oneIn(8) ? 0 : random.below(keyCount))")
        let write = write(at: path, valueByteCountMax, &random)
        _ = other.apply(write)
        let outcome = path.storedBytes.withUnsafeBytes { bytes in
          if cursor.position(of: bytes) != nil { siblingCount += 1 }
          return exchange(&node, write, at: bytes, &cursor)
        }
        if outcome == .declined {
          declinedCount += 1
          cursor.forget()
          _ = node.apply(write)
        }
      }
      switch random.below(24) {
      case 0:  // A copy of the whole tree needs no word.
        held.append((node, ModelTree(node).description))
      case 1:
        cursor.forget()
        let part = node.node(at: try Path(parsing: branch))
        held.append((part, ModelTree(part).description))
      case 2:
        cursor.forget()
        let path = try Path(parsing: "\(branch)/k\(random.below(keyCount))")
        for write in [
          Write.remove(path), .set(try Path(parsing: "\(branch)/k0/x"), Node(.bool(true))),
        ] {
          _ = node.apply(write)
          _ = other.apply(write)
        }
      case 3 where !held.isEmpty: held.removeLast()
      default: break
      }
      if step % 100 == 0 {
        try node.checkInvariants(isCompact: true)
        try #require(node == other, "seed \(seed), step \(step)")
        try #require(ModelTree(node).description == ModelTree(other).description)
      }
    }
    try node.checkInvariants(isCompact: true)
    #expect(node == other, "seed \(seed)")
    for (node, text) in held {
      try node.checkInvariants(isCompact: true)
      #expect(ModelTree(node).description == text, "a held value changed, seed \(seed)")
    }
    #expect(siblingCount > 300 && declinedCount > 0, "\(siblingCount), \(declinedCount)")
  }

  @Test("the second field of a new object is put where the first one was")
  func newObject() throws {
    var node = try tree("{posts:{a:{x:1}}}")
    var cursor = LeafCursor()
    let fields = try [
      "posts/b/title", "posts/b/author", "posts/b/title/deeper", "posts/a/y", "posts/c",
    ]
    .map { try path($0) }
    var isSibling: [Bool] = []
    for field in fields {
      field.storedBytes.withUnsafeBytes { bytes in
        isSibling.append(cursor.position(of: bytes) != nil)
        let outcome = exchange(&node, .increment(field, .integer(1)), at: bytes, &cursor)
        if outcome == .declined { cursor.forget() }
      }
    }
    #expect(isSibling == [false, true, false, false, false])
    #expect(node == (try tree("{posts:{a:{x:1,y:1},b:{author:1,title:1},c:1}}")))
  }

  private func write(
    at path: Path, _ valueByteCountMax: Int, _ random: inout SeededGenerator
  ) -> Write {
    random.oneIn(3)
      ? .increment(path, .integer(Int64(random.below(3))))
      : .set(
        path, Node(.string(String(repeating: "v", count: random.below(valueByteCountMax) + 1))))
  }

  private func exchange(
    _ node: inout Node, _ write: Write, at storedPath: UnsafeRawBufferPointer,
    _ cursor: inout LeafCursor
  ) -> LeafEdit.Outcome {
    if case .increment(_, let delta) = write {
      return node.exchange(.increment(delta), at: storedPath, &cursor) { _ in }
    }
    guard case .set(_, let new) = write, let scalar = new.scalar else { return .declined }
    var packed = [UInt8](repeating: 0, count: PackedScalar.leafByteCount(scalar, priority: nil))
    packed.withUnsafeMutableBytes {
      _ = PackedScalar.writeLeaf(scalar, priority: nil, to: $0.baseAddress!)
    }
    return packed.withUnsafeBytes {
      node.exchange(.set($0), at: storedPath, &cursor) { _ in }
    }
  }
}
