import DendroTree
import DendroTestSupport
import Testing

/// Random writes on `Node` and on the oracle.
@Suite struct NodeModelTests {
  @Test(
    "a node does what the plain model does, and undo is exact",
    arguments: Scale.seeds(20))
  func differential(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    // Some seeds grow wide branches, with more sets than removals, some stay small.
    generator.wideOneIn = [2, 3, 20][Int(seed % 3)]
    generator.wideKeyCount = [30, 400, 3_000][Int(seed / 3 % 3)]
    var node = Node.empty
    var model = ModelTree.empty
    var held: [(node: Node, text: String)] = []
    for step in 0..<600 {
      let write = step % 200 > 170 ? Write.remove(generator.path()) : generator.write()
      let before = step % 20 == 0 ? node : nil
      let text = generator.random.oneIn(10) ? model.description : nil
      let old = text == nil ? nil : model
      let changes = node.apply(write)
      model.apply(write)
      if let text {
        #expect(changes.isEmpty == (model == old), "seed \(seed), step \(step)")
        // There and back.
        let after = node
        for change in changes.reversed() { node.graft(change.replaced, at: change.path) }
        try node.checkInvariants(isCompact: true)
        #expect(ModelTree(node).description == text, "undo, seed \(seed), step \(step)")
        for change in changes { node.graft(change.new, at: change.path) }
        #expect(node == after)
        try #require(ModelTree(node) == model, "redo, seed \(seed), step \(step)")
      }
      if let before {
        var places = 0
        var patched = before
        Node.difference(from: before, to: node) { path, old, new in
          #expect(before.node(at: path) == old && node.node(at: path) == new && old != new)
          patched.graft(new, at: path)
          places += 1
        }
        #expect(patched == node && (places == 0) == (before == node))
      }
      if step % 25 == 0 {
        try node.checkInvariants(isCompact: true)
        try #require(ModelTree(node).description == model.description, "seed \(seed), step \(step)")
      }
      if step % 97 == 0 { held.append((node, model.description)) }
    }
    for (node, text) in held {
      try node.checkInvariants(isCompact: true)
      #expect(ModelTree(node).description == text, "a held value changed, seed \(seed)")
    }
  }

  @Test(
    "reads, iteration and neighbours agree with the model", arguments: Scale.seeds(12)
  )
  func reading(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = 2
    var node = Node.empty
    var model = ModelTree.empty
    for _ in 0..<500 {
      let write = generator.write()
      _ = node.apply(write)
      model.apply(write)
    }
    #expect(node.leafCount() == leafCount(model))
    for _ in 0..<300 {
      let path = generator.path()
      let found = node.node(at: path)
      #expect(ModelTree(found) == model.node(at: ModelTree.path(path)))
      let keys = try model.node(at: ModelTree.path(path)).children.keys
        .map { try Key(String(decoding: $0, as: UTF8.self)) }.sorted()
      #expect(found.childCount == keys.count)
      #expect(found.children.map(\.key) == keys)
      #expect(found.reversedChildren.map(\.key) == keys.reversed())
      let from = generator.key()
      #expect(found.children(from: from).map(\.key) == keys.filter { $0 >= from })
      #expect(
        found.reversedChildren(from: from).map(\.key) == keys.reversed().filter { $0 <= from })
      var editor = TreeEditor(.empty, remembersPlace: true)
      for (path, leaf) in found.stored() where leaf.isLeaf {
        EncodedWrite(.set(path, leaf)).withView { view in editor.apply(view) { _, _ in } }
      }
      var stored = editor.finish()
      if found.isBranch {
        for (path, branch) in found.stored() where branch.isBranch {
          _ = stored.apply(.setPriority(path, branch.priority))
        }
        #expect(ModelTree(stored).description == ModelTree(found).description)
        try stored.checkInvariants(isCompact: true)
      }
      var builder = NodeBuilder()
      for (key, child) in found.children { builder.append(key, child) }
      let rebuilt = builder.finish(priority: found.priority)
      if found.isBranch {
        #expect(rebuilt == found)
        try rebuilt.checkInvariants(isCompact: true)
      }
    }
  }

  private func leafCount(_ model: ModelTree) -> Int {
    model.scalar != nil ? 1 : model.children.values.reduce(0) { $0 + leafCount($1) }
  }

  @Test(
    "a wide branch grows and shrinks in any order", arguments: [0, 1, 2, 3],
    [1, 7, 60, 1_000, 20_000])
  func wide(order: Int, count: Int) throws {
    var random = SeededGenerator(seed: UInt64(count))
    var keys = try (0..<count).map { try Key("-Njk\(1_000_000 + $0)") }
    if order == 1 { keys.reverse() }
    if order > 1 { keys.shuffle(using: &random) }
    let base = try path("posts")
    var node = Node.empty
    for (index, key) in keys.enumerated() {
      let value =
        order == 3 ? try tree("{a:\(index),b:\"xyzxyzxyzxyz\"}") : Node(.integer(Int64(index)))
      _ = node.apply(.set(base.appending(key), value))
      if index == count / 2 { try node.checkInvariants(isCompact: true) }
    }
    try node.checkInvariants(isCompact: true)
    let full = node
    #expect(node.node(at: base).childCount == count)
    #expect(node.node(at: base).children.map(\.key) == keys.sorted())
    if order > 1 { keys.shuffle(using: &random) }
    for (index, key) in keys.enumerated() {
      _ = node.apply(.remove(base.appending(key)))
      if index == count / 2 || index == count - count / 10 {
        try node.checkInvariants(isCompact: true)
        let memory = node.memory()
        #expect(memory.pageCount <= 4 + 2 * memory.leafCount)
      }
    }
    #expect(node.isEmpty)
    #expect(full.node(at: base).childCount == count)
    try full.checkInvariants(isCompact: true)
  }

  @Test(
    "long strings and long priorities",
    arguments: [0, 1, 100, 230, 240, 250, 1_000, 70_000, 1_000_000])
  func long(byteCount: Int) throws {
    let long = Scalar.string(String(repeating: "x", count: byteCount))
    let at = try path("a/b")
    var node = Node.empty
    for value in [
      Node(long), Node(long, priority: .integer(1)), Node(.integer(1), priority: long),
      Node(long, priority: long),
      try tree("{x:1,y:{z:2}}").settingPriority(long),
      try tree("{x:1,y:{z:2}}").settingPriority(.integer(3)),
    ] {
      let before = node
      let changes = node.apply(.set(at, value))
      #expect(node.node(at: at) == value && node.node(at: at).priority == value.priority)
      try node.checkInvariants(isCompact: true)
      var undone = node
      for change in changes.reversed() { undone.graft(change.replaced, at: change.path) }
      #expect(undone == before)
      _ = node.apply(.set(try path("a/b/x"), Node(.integer(9))))
      #expect(node.node(at: at).priority == value.priority)
      _ = node.apply(.setPriority(at, nil))
      #expect(node.node(at: at).priority == nil)
      try node.checkInvariants(isCompact: true)
      _ = node.apply(.setPriority(at, long))
      #expect(node.node(at: at).priority == long)
      try node.checkInvariants(isCompact: true)
    }
  }

  @Test("priority order of keys does not matter to equality and hash")
  func hash() throws {
    #expect(try hashOf(tree("{a:1,b:{c:2.0}!0}")) == hashOf(tree("{b:{c:2}!-0.0,a:1.0}")))
    for other in [
      "{a:1,b:{c:2}}", "{a:1,b:{c:true}!0}", "{a:1,b:{d:2}!0}", "-", "1", "\"1\"", "{a:{b:1}}",
    ] {
      #expect(try hashOf(tree("{a:1,b:{c:2.0}!0}")) != hashOf(tree(other)))
    }
  }

  private func hashOf(_ node: Node) -> [UInt8] {
    struct Collector: ContentHasher {
      var bytes: [UInt8] = []
      mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        self.bytes.append(contentsOf: bytes)
      }
    }
    var collector = Collector()
    node.contentHash(using: &collector)
    return collector.bytes
  }
}
