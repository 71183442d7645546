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
}
