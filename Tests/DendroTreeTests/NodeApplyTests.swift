import DendroTree
import DendroTestSupport
import Testing

struct Row: Sendable, CustomTestStringConvertible {
  var before: String
  var at: String
  var write: String
  var after: String
  /// Where the change is reported.
  var reported: String?

  init(_ before: String, _ at: String, _ write: String, _ after: String, reported: String? = nil) {
    (self.before, self.at, self.write, self.after, self.reported) = (
      before, at, write, after, reported
    )
  }

  var testDescription: String { "\(before): \(at) = \(write) gives \(after)" }
}

@Suite struct NodeApplyTests {
  @Test(
    "a set follows the table of assignments",
    arguments: [
      Row("-", "k", "-", "-"), Row("-", "k", "1", "{k:1}", reported: "/k"),
      Row("7!9", "k", "-", "7!9"), Row("7!9", "k", "1", "{k:1}!9", reported: "/"),
      Row("{a:1}!9", "k", "1", "{a:1,k:1}!9", reported: "/k"),
      Row("{a:1}!9", "a", "2", "{a:2}!9", reported: "/a"),
      Row("{a:1,b:2}!9", "a", "-", "{b:2}!9", reported: "/a"),
      Row("{a:1}!9", "a", "-", "-", reported: "/"), Row("{a:1}", "b", "-", "{a:1}"),
      Row("5!9", "a", "1", "{a:1}!9", reported: "/"),
      Row("{a:{b:{c:1}}}", "a/b/c", "-", "-", reported: "/"),
      Row("{a:{b:{c:1}!1}!2,x:1}!3", "a/b/c", "-", "{x:1}!3", reported: "/a"),
      Row("7", "x/y", "1", "{x:{y:1}}", reported: "/"), Row("7", "q/r", "-", "7"),
      Row("{k:5!9}", "k/a/b", "1", "{k:{a:{b:1}}!9}", reported: "/k"),
      Row("{a:1}", "", "5", "5", reported: "/"), Row("{a:1}", "", "-", "-", reported: "/"),
      Row("{a:{b:1!2,c:3}!4}", "a", "{b:1,c:3}", "{a:{b:1,c:3}}", reported: "/a"),
      Row("{v:1}", "v", "1.0", "{v:1}"), Row("{v:0}", "v", "-0.0", "{v:0}"),
      Row("{v:1}", "v", "true", "{v:true}", reported: "/v"),
      Row("{v:1}", "v", "1!5", "{v:1!5}", reported: "/v"),
      Row("{v:1!5}", "v", "1!5.0", "{v:1!5}"), Row("{v:\"1\"}", "v", "1", "{v:1}", reported: "/v"),
    ])
  func set(row: Row) throws {
    try check(row, .set(path(row.at), tree(row.write)))
    if row.write == "-" { try check(row, .remove(path(row.at))) }
  }

  @Test(
    "a priority needs a node",
    arguments: [
      Row("-", "", "\"x\"", "-"), Row("{a:1}", "b", "1", "{a:1}"),
      Row("{a:1}", "a", "7", "{a:1!7}", reported: "/a"),
      Row("{a:1!7}", "a", "-", "{a:1}", reported: "/a"),
      Row("{a:{b:1}}", "", "\"p\"", "{a:{b:1}}!\"p\"", reported: "/"),
      Row("{a:1!7}", "a", "7.0", "{a:1!7}"), Row("5", "x", "1", "5"),
    ])
  func priority(row: Row) throws {
    try check(row, .setPriority(path(row.at), tree(row.write).scalar))
  }

  @Test(
    "an increment",
    arguments: [
      Row("-", "a", "1", "{a:1}", reported: "/a"), Row("{a:8}", "a", "1", "{a:9}", reported: "/a"),
      Row("{a:\"s\"}", "a", "1", "{a:1}", reported: "/a"),
      Row("{a:{a:1}}", "a", "1", "{a:1}", reported: "/a"),
      Row("{a:true}", "a", "1", "{a:1}", reported: "/a"),
      Row("{a:1}", "a", "1.5", "{a:2.5}", reported: "/a"),
      Row("-", "a", "0", "{a:0}", reported: "/a"), Row("{a:5}", "a", "0", "{a:5}"),
      Row("{a:5!9}", "a", "1", "{a:6}", reported: "/a"),
      Row("5!9", "a", "1", "{a:1}!9", reported: "/"),
    ])
  func increment(row: Row) throws {
    let delta = try #require(try tree(row.write).scalar?.number)
    try check(row, .increment(path(row.at), delta))
  }

  private func check(_ row: Row, _ write: Write) throws {
    let before = try tree(row.before)
    var node = before
    let changes = node.apply(write)
    #expect(node == (try tree(row.after)))
    try node.checkInvariants(isCompact: true)
    #expect(changes.map(\.path.description) == (row.reported.map { [$0] } ?? []))
    for change in changes {
      #expect(change.replaced == before.node(at: change.path))
      #expect(change.new == node.node(at: change.path))
    }
    for change in changes.reversed() { node.graft(change.replaced, at: change.path) }
    #expect(ModelTree(node).description == ModelTree(before).description)
  }

  struct Update: Sendable {
    var before: String
    var at: String
    /// A path that ends in `.priority` sets one; `+n` increments.
    var entries: [(String, String)]
    var after: String?
  }

  static func write(_ update: Update) throws -> Write {
    .update(
      try path(update.at),
      try update.entries.map { text, value in
        let isPriority = text.hasSuffix(".priority")
        let path = try path(isPriority ? String(text.dropLast(9)) : text)
        let node = try tree(value.hasPrefix("+") ? String(value.dropFirst()) : value)
        if isPriority { return Write.Entry(path: path, action: .setPriority(node.scalar)) }
        if value.hasPrefix("+"), let delta = node.scalar?.number {
          return Write.Entry(path: path, action: .increment(delta))
        }
        return Write.Entry(path: path, action: node.isEmpty ? .remove : .set(node))
      })
  }

  @Test(
    "an update applies data in the order of paths, then priorities",
    arguments: [
      Update(
        before: "-", at: "", entries: [("m/.priority", "3"), ("m/x", "1")], after: "{m:{x:1}!3}"),
      Update(before: "{a:1}", at: "", entries: [("gone/.priority", "3")], after: "{a:1}"),
      Update(
        before: "{m:{x:1}!3}", at: "m", entries: [("y", "2"), ("x", "-")], after: "{m:{y:2}}"),
      Update(
        before: "{m:{x:1}!3}", at: "m", entries: [("x", "-"), ("a", "2")], after: "{m:{a:2}!3}"),
      Update(before: "{n:1}", at: "n", entries: [("a", "1"), ("b", "2")], after: "{n:{a:1,b:2}}"),
      Update(before: "{k:5}", at: "k", entries: [("a", "-")], after: "{k:5}"),
      Update(before: "{k:5}", at: "k", entries: [("a", "-"), ("b", "1")], after: "{k:{b:1}}"),
      Update(before: "{a:1}", at: "", entries: [("/", "{b:2}")], after: "{b:2}"),
      Update(
        before: "{a:{c:1},ab:1}", at: "", entries: [("a/b", "1"), ("a/c", "2"), ("ab", "3")],
        after: "{a:{b:1,c:2},ab:3}"),
      Update(before: "{a:1}!4", at: "", entries: [], after: "{a:1}!4"),
      Update(
        before: "{a:{x:1,s:2}!5}", at: "a",
        entries: [("x", "+2"), ("s", "+1.5"), ("n", "+1"), ("x/.priority", "8")], after: nil),
      Update(
        before: "{a:{x:1,s:2}!5}", at: "a", entries: [("x", "+2"), ("s", "+1.5"), ("n", "+1")],
        after: "{a:{x:3,s:3.5,n:1}!5}"),
      Update(before: "{a:1}", at: "", entries: [("a", "1"), ("ab", "2")], after: "{a:1,ab:2}"),
      Update(before: "-", at: "", entries: [("a", "1"), ("a/b", "2")], after: nil),
      Update(before: "-", at: "", entries: [("a", "1"), ("/a", "2")], after: nil),
      Update(before: "-", at: "", entries: [("/", "1"), ("a", "2")], after: nil),
      Update(before: "-", at: "", entries: [("a/b", "1"), ("a/b/.priority", "2")], after: nil),
      Update(
        before: "-", at: "", entries: [("a/.priority", "1"), ("a/.priority", "2")], after: nil),
      Update(before: "-", at: "", entries: [("a/.priority", "true")], after: nil),
      Update(
        before: "-", at: "", entries: [("a", "1"), ("a/.priority", "2"), ("b", "1")], after: nil),
      Update(before: "-", at: "", entries: [("a", "1"), ("b/c", "1"), ("a/x/y", "1")], after: nil),
    ])
  func update(update: Update) throws {
    let write = try NodeApplyTests.write(update)
    guard let after = update.after else {
      #expect { try write.validate() } throws: { ($0 as? ValidationError)?.kind == .invalidData }
      return
    }
    try write.validate()
    let before = try tree(update.before)
    var node = before
    let changes = node.apply(write)
    #expect(node == (try tree(after)))
    if node == before { #expect(changes.isEmpty) }
    for change in changes.reversed() { node.graft(change.replaced, at: change.path) }
    #expect(ModelTree(node).description == ModelTree(before).description)
  }

  @Test(
    "depth: 32 levels are allowed, 33 are not",
    arguments: [
      (1, 31, true), (1, 32, false), (32, 0, true), (33, 0, false), (0, 32, true), (0, 33, false),
    ])
  func depth(segments: Int, height: Int, isValid: Bool) throws {
    let key = try Key("d")
    var node = Node(.integer(1), priority: .integer(2))
    for _ in 0..<height {
      var builder = NodeBuilder()
      builder.append(key, node)
      node = builder.finish()
    }
    #expect(node.height() == height)
    let path = Path(keys: Array(repeating: key, count: segments))
    for write in [
      Write.set(path, node), .update(.root, [Write.Entry(path: path, action: .set(node))]),
    ] {
      if isValid {
        try write.validate()
      } else {
        #expect(throws: ValidationError.self) { try write.validate() }
      }
    }
  }

  @Test(
    "writes that no tree can take are refused",
    arguments: [
      Write.increment(.root, .double(.infinity)), .increment(.root, .double(.nan)),
      .setPriority(.root, .bool(true)), .setPriority(.root, .double(.nan)),
    ])
  func invalid(write: Write) { #expect(throws: ValidationError.self) { try write.validate() } }

  @Test(
    "deferred values are resolved against the tree before the write",
    arguments: [
      ("{a:3,c:9}", "{a:0,b:0}", [("a", false, 2.0), ("b", false, nil)], "{a:5,b:77}"),
      ("{0:10,1:20}", "{0:0,1:0}", [("0", false, 1), ("1", false, 1)], "{0:11,1:21}"),
      ("0!1", "0", [("", true, 1.5)], "0!2.5"), ("1!9", "0!4", [("", false, 1)], "2!4"),
      ("-", "{x:\"s\"}", [("x", true, nil)], "{x:\"s\"!77}"), ("-", "-", [("x", true, nil)], "-"),
      ("{a:true}", "{a:0!3}", [("a", false, 1), ("a", true, 2)], "{a:1!2}"),
    ] as [(String, String, [(String, Bool, Double?)], String)])
  func deferred(before: String, set: String, deferred: [(String, Bool, Double?)], after: String)
    throws
  {
    let root = try tree("{p:\(before),q:1}")
    let items = try deferred.map { text, isPriority, delta in
      Draft.Deferred(
        path: try path(text), isPriority: isPriority,
        value: delta.map { .increment(.double($0)) } ?? .timestamp)
    }
    var node = root
    _ = node.apply(
      Draft(.set(try path("p"), try tree(set)), deferred: items).resolved(time: 77, against: root))
    #expect(node == (try tree("{p:\(after),q:1}")))
    // The same as an entry of an update.
    var other = root
    let entries = [Write.Entry(path: try path("p"), action: .set(try tree(set)))]
    let below = items.map {
      Draft.Deferred(
        path: (try? path("p").appending($0.path)) ?? .root, isPriority: $0.isPriority,
        value: $0.value)
    }
    _ = other.apply(
      Draft(.update(.root, entries), deferred: below).resolved(time: 77, against: root))
    #expect(other == node)
  }
}

/// Values that only admission knows, in updates of many entries.
@Suite("Drafts of many entries")
struct DraftTests {
  @Test("each deferred value reaches its own entry, in time that grows with their number")
  func manyEntries() throws {
    // Were every value to look at every entry, this alone would take minutes.
    let count = 30_000
    let keys = try (0..<count).map { try Key("k\($0)") }
    let time = Path(keys: [try Key("time")])
    var entries: [Write.Entry] = []
    var deferred: [Draft.Deferred] = []
    for (number, key) in keys.enumerated() {
      let path = Path(keys: [key])
      var node = Node.empty
      node.graft(Node(.integer(0)), at: time)
      node.graft(Node(.integer(Int64(number))), at: Path(keys: [try Key("n")]))
      entries.append(.init(path: path, action: .set(node)))
      deferred.append(.init(path: path.appending(time), value: .timestamp))
    }
    let priority = Path(keys: [try Key("there")])
    entries.append(.init(path: priority, action: .setPriority(.integer(0))))
    deferred.append(.init(path: priority, isPriority: true, value: .increment(.integer(5))))
    var root = Node.empty
    root.graft(Node(.bool(true), priority: .integer(2)), at: priority)
    let write = Draft(.update(.root, entries), deferred: deferred).resolved(
      time: 77, against: root)
    _ = root.apply(write)
    for (number, key) in keys.enumerated() {
      let node = root.child(key)
      #expect(node.node(at: time).scalar == .integer(77))
      #expect(node.child(try Key("n")).scalar == .integer(Int64(number)))
    }
    #expect(root.node(at: priority).priority == .integer(7))
  }
}
