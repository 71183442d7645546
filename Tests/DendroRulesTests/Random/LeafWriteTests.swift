import DendroTestSupport
import DendroTree
import Testing

@testable import DendroRules

/// A write of one leaf, judged without the tree after it.
@Suite("Rules about one leaf")
struct LeafWriteTests {
  @Test(
    "the verdict is the one on the whole tree, with its steps, its trace and what it saw",
    arguments: Scale.seeds(10))
  func sameVerdict(seed: UInt64) throws {
    var generator = RuleGenerator(seed: seed)
    var (allowed, denied, held) = (0, 0, 0)
    for _ in 0..<400 {
      let text = generator.rules()
      guard let rules = try? Rules(text) else { continue }
      for _ in 0..<8 {
        let before = try tree(&generator)
        let path = try Path(parsing: "\(generator.pick(RuleGenerator.keys))/\(generator.path(3))")
        let scalar = generator.pick(
          [.bool(true), .integer(1), .integer(9_007_199_254_740_993), .double(1.5), .string("ab1")]
            as [Scalar])
        let write = EncodedWrite(.set(path, Node(scalar)))
        let request = RuleRequest(
          [RuleRequest.Location(path)], query: nil, auth: generator.auth(), now: 5)
        let details: RuleDetails = [.trace, .observations]
        let whole = rules.decide(
          request, data: before, newData: before.applying(write, time: 5), details: details)
        var found: RuleVerdict?
        #expect(
          write.withLeaf {
            found = rules.decide(request, data: before, setting: $0, at: path, details: details)
          })
        let verdict = try #require(found)
        let context: Comment = "seed \(seed): \(text)\n\(before)\n\(path) = \(scalar)"
        #expect(verdict.isAllowed == whole.isAllowed, context)
        #expect(verdict.stepCount == whole.stepCount, context)
        #expect(verdict.trace?.description == whole.trace?.description, context)
        let other = before.applying(
          EncodedWrite(.set(try Path(parsing: generator.path(3)), try tree(&generator))), time: 5)
        for node in [before, other] {
          let after = node.applying(write, time: 5)
          let holds = verdict.observations?.hold(data: node, newData: after)
          #expect(holds == whole.observations?.hold(data: node, newData: after), context)
          if holds == true { held += 1 }
        }
        if verdict.isAllowed { allowed += 1 } else { denied += 1 }
      }
    }
    #expect(allowed > 100 && denied > 100 && held > 1000, "seed \(seed): \(allowed), \(denied)")
  }

  private func tree(_ generator: inout RuleGenerator) throws -> Node {
    try JSONTree(generator.data().replacing("{\".sv\":\"timestamp\"}", with: "5")).node
  }

  @Test("any other write is none of one leaf")
  func others() throws {
    let path = try Path(parsing: "a/b")
    let branch = Node.empty.applying(EncodedWrite(.set(path, Node(.integer(1)))), time: 1)
    let one = Node(.integer(1))
    for write: Write in [
      .set(.root, one), .set(path, branch), .set(path, .empty), .remove(path),
      .set(path, Node(.integer(1), priority: .integer(2))), .increment(path, .integer(1)),
      .update(.root, []), .setPriority(path, .integer(1)),
    ] {
      #expect(!EncodedWrite(write).withLeaf { _ in }, "\(write)")
    }
    // It leaves an integer that equals it.
    #expect(!EncodedWrite(.set(path, Node(.double(9_007_199_254_740_992)))).withLeaf { _ in })
    for scalar: Scalar in [.integer(1), .double(1.5), .bool(false), .string("")] {
      var found: Scalar?
      #expect(EncodedWrite(.set(path, Node(scalar))).withLeaf { found = $0.scalar })
      #expect(found == scalar)
    }
  }

  @Test(
    "the children on the way to the leaf are those of the tree after the write",
    arguments: [true, false])
  func children(isThere: Bool) throws {
    let path = try Path(parsing: "a/b")
    let write = EncodedWrite(.set(path, Node(.integer(1))))
    var before = try JSONTree(#"{"a": {"a": 0, "c": 2}, "z": true}"#).node
    if isThere { before = before.applying(EncodedWrite(.set(path, Node(.integer(7)))), time: 1) }
    let after = before.applying(write, time: 1)
    var found: [[String: DataKind]]?
    let isLeaf = write.withLeaf { leaf in
      found = LeafWriteSource.with(before, setting: leaf, at: path) { old, new in
        [Self.kinds(at: "a", of: old), Self.kinds(at: "a", of: new)]
      }
    }
    #expect(isLeaf)
    let expected = NodeSource.with(before, after) { old, new in
      [Self.kinds(at: "a", of: old), Self.kinds(at: "a", of: new)]
    }
    #expect(found == expected)
    #expect(expected[1] == ["a": .number, "b": .number, "c": .number])
  }

  /// The children at a child of the root, in whatever order.
  private static func kinds(at key: String, of source: some DataSource) -> [String: DataKind] {
    guard let path = try? Path(parsing: key) else { return [:] }
    var kinds: [String: DataKind] = [:]
    path.storedBytes.withUnsafeBytes { path in
      source.root.descendant(at: path).visitChildren { key, child in
        kinds[key.string] = child.kind
        return true
      }
    }
    return kinds
  }
}
