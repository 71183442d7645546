import DendroTestSupport
import Testing

@testable import DendroTree

/// Edits of leaves in one descent: the same tree as by `apply`, whatever is there.
@Suite struct NodeExchangeTests {
  private func packed(_ scalar: Scalar, priority: Scalar? = nil) -> [UInt8] {
    let byteCount = PackedScalar.leafByteCount(scalar, priority: priority)
    return [UInt8](unsafeUninitializedCapacity: byteCount) { target, count in
      _ = PackedScalar.writeLeaf(
        scalar, priority: priority, to: UnsafeMutableRawPointer(target.baseAddress!))
      count = byteCount
    }
  }

  /// What an edit says, and the packed leaf that it replaces.
  private func exchange(
    _ node: inout Node, _ write: Write
  ) -> (outcome: LeafEdit.Outcome, replaced: [UInt8]?) {
    var replaced: [UInt8]?
    func edit(_ edit: LeafEdit, _ path: Path) -> LeafEdit.Outcome {
      path.storedBytes.withUnsafeBytes { bytes in
        node.exchange(edit, at: bytes) { replaced = Array($0) }
      }
    }
    switch write {
    case .set(let path, let new):
      guard let scalar = new.scalar, new.priority == nil else { return (.declined, nil) }
      let bytes = packed(scalar)
      if bytes.count > LeafEdit.byteCountMax { return (.declined, nil) }
      let outcome = bytes.withUnsafeBytes { edit(.set($0), path) }
      return (outcome, replaced)
    case .increment(let path, let delta):
      let outcome = edit(.increment(delta), path)
      return (outcome, replaced)
    case .remove, .setPriority, .update: return (.declined, nil)
    }
  }

  @Test(
    "an edit does what applying the write does, on shared and unshared pages",
    arguments: 1...12 as ClosedRange<UInt64>)
  func differential(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = [2, 3, 20][Int(seed % 3)]
    generator.wideKeyCount = [30, 400, 3_000][Int(seed / 3 % 3)]
    generator.stringByteCountMax = [10, 300][Int(seed % 2)]
    var node = Node.empty
    var other = Node.empty
    var held: [(node: Node, text: String)] = []
    var counts = [Int](repeating: 0, count: 4)
    for step in 0..<800 {
      let write = generator.write()
      let existing = node.node(at: write.path)
      let changes = other.apply(write)
      // Kept in some steps only: with a second reference every edit copies.
      let before = step % 4 == 0 ? node : nil
      let (outcome, replaced) = exchange(&node, write)
      switch outcome {
      case .declined:
        if let before { #expect(node.isIdentical(to: before), "seed \(seed), step \(step)") }
        #expect(replaced == nil)
        _ = node.apply(write)
        counts[0] += 1
      case .unloaded: Issue.record("all pages are in memory")
      case .unchanged:
        #expect(changes.isEmpty && replaced == nil, "seed \(seed), step \(step)")
        counts[1] += 1
      case .inserted:
        #expect(existing.isEmpty && replaced == nil && changes.count == 1)
        #expect(changes.first?.path == write.path, "seed \(seed), step \(step)")
        counts[2] += 1
      case .replaced:
        let scalar = try #require(existing.scalar)
        #expect(replaced == packed(scalar, priority: existing.priority))
        #expect(changes.count == 1, "seed \(seed), step \(step)")
        counts[3] += 1
      }
      if step % 50 == 0 {
        try node.checkInvariants(isCompact: true)
        try #require(node == other, "seed \(seed), step \(step)")
        try #require(ModelTree(node).description == ModelTree(other).description)
      }
      if step % 97 == 0 { held.append((node, ModelTree(node).description)) }
    }
    for (node, text) in held {
      try node.checkInvariants(isCompact: true)
      #expect(ModelTree(node).description == text, "a held value changed, seed \(seed)")
    }
    #expect(counts[0] > 0 && counts[2] > 0 && counts[3] > 0, "\(counts)")
  }

  @Test(
    "many leaves in a list: unshared pages split, grow and shrink in place",
    arguments: [1, 30, 200])
  func inPlace(valueByteCount: Int) throws {
    var random = SeededGenerator(seed: UInt64(valueByteCount))
    var node = try tree("{other:1}")
    var model: [Int: Scalar] = [:]
    for step in 0..<20_000 {
      let key = random.below(4_000)
      let path = try Path(parsing: step % 3 == 0 ? "list/k\(key)" : "list/k\(key)/field")
      // The two forms exclude each other: the first one at a key decides.
      let isLeaf = key % 2 == 0
      guard isLeaf == (step % 3 == 0) else { continue }
      let text = Scalar.string(
        String(repeating: "v", count: random.below(valueByteCount)) + String(step))
      let scalar: Scalar = random.oneIn(3) ? .integer(Int64(step)) : text
      let (outcome, _) = exchange(&node, .set(path, Node(scalar)))
      #expect((model[key] == nil) == (outcome == .inserted))
      #expect((model[key] != nil) == (outcome == .replaced))
      model[key] = scalar
      if step % 1_000 == 0 { try node.checkInvariants(isCompact: true) }
    }
    try node.checkInvariants(isCompact: true)
    #expect(node.child(try Key("list")).childCount == model.count)
    for (key, scalar) in model {
      let path = try Path(parsing: key % 2 == 0 ? "list/k\(key)" : "list/k\(key)/field")
      #expect(node.node(at: path).scalar == scalar)
    }
  }

  @Test("what cannot be decided at the leaf is declined, and nothing is changed")
  func declined() throws {
    let start = try tree("{a:1,b:{c:true},d:{e:2}!7,f:3!8}")
    for (place, write) in [
      ("a/x", Write.set(try path("a/x"), Node(.integer(1)))),
      ("b", .set(try path("b"), Node(.integer(1)))),
      ("/", .set(.root, Node(.integer(1)))),
      ("b", .increment(try path("b"), .integer(1))),
      ("long", .set(try path("long"), Node(.string(String(repeating: "x", count: 300))))),
    ] {
      var node = start
      #expect(exchange(&node, write).outcome == .declined, "\(place)")
      #expect(node.isIdentical(to: start), "\(place)")
    }
    var leaf = Node(.integer(5))
    #expect(exchange(&leaf, .set(try path("a"), Node(.integer(1)))).outcome == .declined)
    #expect(leaf.scalar == .integer(5))
  }

  @Test("numbers of equal value, and leaves that lose a priority")
  func edges() throws {
    var node = try tree("{a:1,f:3!8,t:\"x\",b:true}")
    #expect(exchange(&node, .set(try path("a"), Node(.double(1)))).outcome == .unchanged)
    #expect(exchange(&node, .set(try path("b"), Node(.bool(true)))).outcome == .unchanged)
    #expect(exchange(&node, .increment(try path("a"), .integer(0))).outcome == .unchanged)
    let (outcome, replaced) = exchange(&node, .set(try path("f"), Node(.integer(3))))
    #expect(outcome == .replaced && replaced == packed(.integer(3), priority: .integer(8)))
    #expect(node.node(at: try path("f")).priority == nil)
    #expect(exchange(&node, .increment(try path("t"), .double(2.5))).outcome == .replaced)
    #expect(node.node(at: try path("t")).scalar == .double(2.5))
    #expect(exchange(&node, .increment(try path("new"), .integer(4))).outcome == .inserted)
    let greatest = Number.integer(.max)
    #expect(exchange(&node, .increment(try path("new"), greatest)).outcome == .replaced)
    #expect(node.node(at: try path("new")).scalar == .double(0x1p63))
    try node.checkInvariants(isCompact: true)
  }
}
