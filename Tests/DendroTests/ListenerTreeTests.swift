import Dendro
import DendroTree
import Testing

/// Whom a write concerns, and at what cost.
@Suite("Who listens where")
struct ListenerTreeTests {
  private func path(_ text: String) throws -> Path { try Path(parsing: text) }

  private func tree(_ paths: [String]) throws -> ListenerTree {
    let tree = ListenerTree()
    for text in paths { tree.insert(View(path: try path(text), node: .empty, at: 0)) }
    return tree
  }

  private func concerned(_ tree: ListenerTree, _ paths: [String]) throws -> [String] {
    var names: [String] = []
    tree.forEachConcerned(by: try paths.map(path), root: .empty) { view, _ in
      names.append("\(view.path)")
    }
    return names
  }

  @Test(
    "those above, at and below, descendants first",
    arguments: [
      (["u/a"], ["/u/a/n", "/u/a", "/u", "/"]),
      (["u/a/n/x"], ["/u/a/n", "/u/a", "/u", "/"]),
      (["u/b"], ["/u", "/"]),
      (["o"], ["/o", "/"]),
      (["none"], ["/"]),
      (["/"], ["/o", "/u/a/n", "/u/a", "/u", "/"]),
      (["u/a/n", "o"], ["/o", "/u/a/n", "/u/a", "/u", "/"]),
      (["u/a", "u/a/n"], ["/u/a/n", "/u/a", "/u", "/"]),
      (["u/x", "u/y", "v"], ["/u", "/"]),
      (["u", "/"], ["/o", "/u/a/n", "/u/a", "/u", "/"]),
    ])
  func concern(_ changed: [String], _ expected: [String]) throws {
    let tree = try tree(["/", "u", "u/a", "u/a/n", "o"])
    #expect(try concerned(tree, changed) == expected)
  }

  @Test("each view is visited once, whatever the update")
  func once() throws {
    let tree = try tree(["10", "9", "a", "a/b"])
    #expect(try concerned(tree, ["9", "10", "a/b/c", "a/b/d"]) == ["/10", "/9", "/a/b", "/a"])
  }

  @Test("a write visits the same views with 0 and with 100,000 listeners elsewhere")
  func independence() throws {
    let few = try tree(["here/a"])
    let many = try tree(["here/a"] + (0..<100_000).map { "elsewhere/\($0 % 1000)/\($0)" })
    #expect(try concerned(few, ["here/a"]) == concerned(many, ["here/a"]))
  }

  @Test("removed views leave nothing behind")
  func removal() throws {
    let tree = ListenerTree()
    let views = try ["a/b/c", "a", "a/b/d"].map { View(path: try path($0), node: .empty, at: 0) }
    for view in views { tree.insert(view) }
    tree.remove(views[0])
    #expect(try concerned(tree, ["/"]) == ["/a/b/d", "/a"])
    tree.remove(views[1])
    tree.remove(views[1])
    #expect(try concerned(tree, ["a/b"]) == ["/a/b/d"])
    tree.remove(views[2])
    #expect(try concerned(tree, ["/"]) == [])
    #expect(tree.isEmpty)
  }
}

@Suite("First in, first out")
struct QueueTests {
  @Test("like an array, for every pattern of putting in and taking out", arguments: 0..<8)
  func model(pattern: UInt64) {
    var queue = Queue<Int>()
    var model: [Int] = []
    var next = 0
    var state = pattern &+ 1
    for _ in 0..<5_000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      if state >> 60 < 8 + pattern / 2 {
        queue.append(next)
        model.append(next)
        next += 1
      } else {
        #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
      }
      #expect(queue.count == model.count && queue.isEmpty == model.isEmpty)
    }
    queue.removeAll()
    #expect(queue.popFirst() == nil)
  }
}

/// The events of a view are a function of two states; the plain form of that function is the judge.
@Suite("Events of two states")
struct EventGeneratorTests {
  @Test("agree with the plain model on random states", arguments: 0..<40)
  func model(seed: UInt64) throws {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
    func random(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    func leaf() -> Node {
      let priority: Scalar? =
        switch random(6) {
        case 0: .integer(Int64(random(3)))
        case 1: .string("p\(random(2))")
        case 2: .double(Double(random(3)))
        default: nil
        }
      return Node(random(2) == 0 ? .integer(Int64(random(3))) : .bool(true), priority: priority)
    }
    func change(_ node: Node) throws -> Node {
      var node = node
      for _ in 0..<random(6) {
        let key = ["a", "b", "10", "9", "é", "z", "007"][random(7)]
        let path = try Path(parsing: random(3) == 0 ? "\(key)/\(random(2))" : key)
        switch random(5) {
        case 0: _ = node.apply(.remove(path))
        case 1: _ = node.apply(.setPriority(path, .integer(Int64(random(3)))))
        case 2 where random(8) == 0: node = leaf()
        case 3 where random(4) == 0: _ = node.apply(.setPriority(.root, leaf().priority))
        default: _ = node.apply(.set(path, leaf()))
        }
      }
      return node
    }
    var old = Node.empty
    for step in 0..<60 {
      let new = try change(old)
      let events = EventGenerator.events(
        from: old, to: new, for: [.value, .added, .removed, .changed, .moved])
      #expect(events.map(described) == plain(old, new), "seed \(seed), step \(step)")
      for type in DataEventType.allCases {
        let some = EventGenerator.events(from: old, to: new, for: EventTypes(type))
        #expect(some.map(described) == events.filter { $0.type == type }.map(described))
      }
      old = new
    }
  }

  private func described(_ event: Event) -> String {
    "\(event.type) \(event.key?.string ?? "-") after \(event.previousKey?.string ?? "-")"
  }

  /// Section by section what the events mean, with nothing clever: sort, compare, list.
  private func plain(_ old: Node, _ new: Node) -> [String] {
    func sorted(_ node: Node) -> [Child] {
      node.children.map { Child(key: $0.key, node: $0.node) }.sorted { a, b in
        switch (a.node.priority, b.node.priority) {
        case (let p?, let q?): p == q ? a.key < b.key : p < q
        case (nil, nil): a.key < b.key
        case (let p, _): p == nil
        }
      }
    }
    let before = sorted(old)
    let after = sorted(new)
    func line(_ type: DataEventType, _ child: Child) -> String {
      let index = after.firstIndex { $0.key == child.key }
      let previous = index.flatMap { $0 > 0 ? after[$0 - 1].key.string : nil }
      return "\(type) \(child.key.string) after \(previous ?? "-")"
    }
    let changed = after.filter { child in
      before.contains { $0.key == child.key && $0.node != child.node }
    }
    var lines: [String] = []
    for child in before where !after.contains(where: { $0.key == child.key }) {
      lines.append("childRemoved \(child.key.string) after -")
    }
    for child in after where !before.contains(where: { $0.key == child.key }) {
      lines.append(line(.childAdded, child))
    }
    for child in changed where old.child(child.key).priority != child.node.priority {
      lines.append(line(.childMoved, child))
    }
    for child in changed { lines.append(line(.childChanged, child)) }
    if old != new { lines.append("value - after -") }
    return lines
  }
}
