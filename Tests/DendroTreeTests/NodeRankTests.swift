import DendroTree
import DendroTestSupport
import Testing

@Suite("Children by rank")
struct NodeRankTests {
  @Test("like an array, for lists of every height", arguments: [0, 1, 2, 60, 300, 3_000, 40_000])
  func model(count: Int) throws {
    var random = SeededGenerator(seed: UInt64(count))
    var builder = NodeBuilder()
    var node = Node.empty
    for number in 0..<count {
      builder.append(try Key("k\(random.below(count * 2))-\(number)"), Node(.bool(true)))
    }
    node = builder.finish()
    // Holes, so that the first keys of pages are not those that once bounded them.
    for child in node.children where random.oneIn(3) {
      node.graft(.empty, at: Path(keys: [child.key]))
    }
    let keys = node.children.map(\.key)
    for rank in keys.indices where count < 1_000 || random.oneIn(20) {
      #expect(node.child(at: rank).key == keys[rank])
      #expect(node.childCount { $0 < keys[rank] } == rank)
      #expect(node.childCount { $0 <= keys[rank] } == rank + 1)
    }
    let between = try Key("k1-x")
    #expect(node.childCount { $0 < between } == keys.count { $0 < between })
    #expect(node.childCount { _ in true } == keys.count && node.childCount { _ in false } == 0)
    #expect(Node(.bool(true)).childCount { _ in true } == 0)
  }

  @Test("changed children: each once, in order, whatever the priorities above")
  func changed() throws {
    var old = Node.empty
    for text in ["a/x", "b", "c", "d/y/z"] {
      _ = old.apply(.set(try Path(parsing: text), Node(.integer(1))))
    }
    var new = old.settingPriority(.integer(1))
    _ = new.apply(.set(try Path(parsing: "c"), Node(.double(1))))  // Equal.
    _ = new.apply(.set(try Path(parsing: "a/x"), Node(.integer(2))))
    _ = new.apply(.set(try Path(parsing: "a/w"), Node(.integer(2))))
    _ = new.apply(.set(try Path(parsing: "e"), Node(.integer(2))))
    _ = new.apply(.remove(try Path(parsing: "d/y/z")))
    func lines(_ a: Node, _ b: Node) -> [String] {
      var lines: [String] = []
      Node.changedChildren(from: a, to: b) { key, x, y in
        lines.append("\(key) \(x.isEmpty ? "" : "-")\(y.isEmpty ? "" : "+")")
      }
      return lines
    }
    #expect(lines(old, new) == ["a -+", "d -", "e +"])
    #expect(lines(.empty, old) == ["a +", "b +", "c +", "d +"])
    #expect(lines(old, Node(.bool(true))) == ["a -", "b -", "c -", "d -"])
    #expect(lines(Node(.bool(true)), .empty) == [])
  }

  @Test("changed children are those of a comparison one by one", arguments: 0..<60)
  func changedAtRandom(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var old = Node.empty
    // With few children one page, with many three levels of pages; branches, long leaves and short ones.
    let keyCount = [5, 60, 3_000][Int(seed) % 3]
    func change(_ node: inout Node, _ count: Int) throws {
      for _ in 0..<count {
        let key = "k\(random.below(keyCount))"
        let value = Node(.string(String(repeating: "x", count: [1, 20, 300][random.below(3)])))
        switch random.below(5) {
        case 0: _ = node.apply(.remove(try Path(parsing: key)))
        case 1: _ = node.apply(.set(try Path(parsing: "\(key)/\(random.below(3))"), value))
        case 2:
          _ = node.apply(.setPriority(try Path(parsing: key), .integer(Int64(random.below(3)))))
        default:
          _ = node.apply(.set(try Path(parsing: key), Node(.integer(Int64(random.below(4))))))
        }
      }
    }
    try change(&old, keyCount * 2)
    for _ in 0..<6 {
      var new = old
      try change(&new, [1, 10, keyCount][random.below(3)])
      var expected: [Key: (Node, Node)] = [:]
      for (key, child) in old.children { expected[key] = (child, .empty) }
      for (key, child) in new.children { expected[key] = (expected[key]?.0 ?? .empty, child) }
      expected = expected.filter { $0.value.0 != $0.value.1 }
      var keys: [Key] = []
      Node.changedChildren(from: old, to: new) { key, before, after in
        keys.append(key)
        let (x, y) = expected[key] ?? (.empty, .empty)
        #expect(before == x && after == y, "seed \(seed), \(key)")
      }
      #expect(keys == expected.keys.sorted(), "seed \(seed)")
      old = new
    }
  }
}
