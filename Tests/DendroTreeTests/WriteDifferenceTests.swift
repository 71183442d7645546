import DendroTree
import DendroTestSupport
import Testing

@Suite("What changes one tree into another")
struct WriteDifferenceTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let old: String
    let new: String
    /// Nil if only the set will do.
    let write: String?
    var testDescription: String { "\(old) to \(new)" }
  }

  static let rows = [
    Row(old: "{a:1,b:2}", new: "{a:1,b:3}", write: "set /p/b"),
    Row(old: "{a:1,b:2}", new: "{a:1}", write: "remove /p/b"),
    Row(old: "{a:1}", new: "{a:1,b:{c:2}}", write: "set /p/b"),
    Row(old: "{a:1,b:2}", new: "{a:1,b:2}", write: "update /p"),
    Row(old: "{a:1,b:2,c:3}", new: "{a:5,b:2,d:4}", write: "update /p: set /a, remove /c, set /d"),
    Row(old: "{a:{x:1,y:2},b:1}", new: "{a:{x:1,y:3},b:1}", write: "set /p/a/y"),
    Row(old: "{a:{x:1},b:1}", new: "{a:5,b:1}", write: "set /p/a"),
    Row(old: "{a:5,b:1}", new: "{a:{x:1},b:1}", write: "set /p/a"),
    // A priority of its own, beside changes below.
    Row(old: "{a:1}!1", new: "{a:1}!2", write: "priority /p"),
    Row(old: "{a:1}!1", new: "{a:1}", write: "priority /p"),
    Row(
      old: "{a:{x:1,y:1},b:1}", new: "{a:{x:2,y:1}!7,b:1}",
      write: "update /p: priority /a, set /a/x"),
    Row(old: "{a:1!2,b:1}", new: "{a:1!3,b:1}", write: "set /p/a"),
    // With no key in common the branch would be empty in between, and pruned with its priority.
    Row(old: "{a:{x:1}!9,b:1}", new: "{a:{y:1}!9,b:1}", write: "set /p/a"),
    Row(old: "{a:{m:{x:1}!9}!8,b:1}", new: "{a:{m:{y:1}!9}!8,b:1}", write: "set /p/a/m"),
    Row(old: "{a:1}", new: "{b:1}", write: nil),
    Row(old: "{a:1}!4", new: "{b:1}!5", write: nil),
    // A number that changes its type alone is no change to an update.
    Row(old: "{a:1,b:2}", new: "{a:1.0,b:3}", write: nil),
    Row(old: "{a:{x:1!2},b:2}", new: "{a:{x:1!2.0},b:3}", write: nil),
    Row(old: "{a:{x:1}!2,b:2}", new: "{a:{x:1}!2.0,b:3}", write: nil),
    Row(old: "{a:1.0,b:2}", new: "{a:1.0,b:3}", write: "set /p/b"),
    Row(old: "5", new: "{a:1}", write: nil), Row(old: "{a:1}", new: "5", write: nil),
    Row(old: "-", new: "{a:1}", write: nil), Row(old: "5", new: "6", write: nil),
  ]

  private static func text(_ write: Write) -> String {
    func text(_ action: Write.Entry.Action) -> String {
      switch action {
      case .set: "set"
      case .remove: "remove"
      case .increment: "increment"
      case .setPriority: "priority"
      }
    }
    switch write {
    case .set(let path, _): return "set \(path)"
    case .remove(let path): return "remove \(path)"
    case .increment(let path, _): return "increment \(path)"
    case .setPriority(let path, _): return "priority \(path)"
    case .update(let path, let entries):
      let entries = entries.map { "\(text($0.action)) \($0.path)" }.joined(separator: ", ")
      return "update \(path)" + (entries.isEmpty ? "" : ": \(entries)")
    }
  }

  @Test("one change, an update, or nothing but the set", arguments: rows)
  func table(_ row: Row) throws {
    let old = try tree(row.old)
    let new = try tree(row.new)
    let change = Write.changing(old, to: new, at: try path("p"))
    #expect(change.map { Self.text($0.write) } == row.write)
    guard let write = change?.write else { return }
    try write.validate()
    var root = Node.empty
    root.graft(old, at: try path("p"))
    _ = root.apply(write)
    #expect(Self.isExactly(root.node(at: try path("p")), new))
  }

  /// Equal, and each number of the same type.
  private static func isExactly(_ a: Node, _ b: Node) -> Bool {
    ModelTree(a).description == ModelTree(b).description
  }

  @Test("applied to the one, it leaves exactly the other, also if they share pages")
  func random() throws {
    var counts = (write: 0, set: 0)
    for seed in 1...300 as ClosedRange<UInt64> {
      var generator = WriteGenerator(seed: seed)
      generator.wideKeyCount = 60
      generator.stringByteCountMax = 6
      var old = Node.empty
      for _ in 0..<30 { _ = old.apply(generator.write()) }
      var new = old
      for _ in 0..<generator.random.below(6) { _ = new.apply(generator.write()) }
      // Sometimes a tree of its own with the same content, which shares nothing.
      if generator.random.oneIn(3) { new = Self.rebuilt(new) }
      let place = generator.path()
      var root = Node.empty
      root.graft(old, at: place)
      guard let (write, _) = Write.changing(old, to: new, at: place) else {
        counts.set += 1
        continue
      }
      counts.write += 1
      let changes = root.apply(write)
      #expect(Self.isExactly(root.node(at: place), new), "seed \(seed)")
      #expect(changes.isEmpty == (old == new), "seed \(seed)")
      for change in changes.reversed() { root.graft(change.replaced, at: change.path) }
      #expect(Self.isExactly(root.node(at: place), old), "seed \(seed)")
    }
    #expect(counts.write > 100 && counts.set > 0, "\(counts)")
  }

  private static func rebuilt(_ node: Node) -> Node {
    guard node.isBranch else { return node }
    var builder = NodeBuilder()
    node.forEachChild { builder.append($0, rebuilt($1)) }
    return builder.finish(priority: node.priority)
  }

  @Test("what the two share is not looked at")
  func large() throws {
    var builder = NodeBuilder()
    for number in 0..<100_000 { builder.append(try Key("k\(number)"), Node(.integer(0))) }
    let old = builder.finish()
    for number in 0..<1000 {
      var new = old
      let place = try path("k\(number * 97)")
      _ = new.apply(.set(place, Node(.integer(1))))
      // Were every child to be looked at, this would take minutes.
      let (write, siblings) = try #require(Write.changing(old, to: new, at: .root))
      #expect(write.path == place && siblings == 100_000)
    }
  }
}
