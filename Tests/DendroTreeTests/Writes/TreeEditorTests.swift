import DendroTestSupport
import Testing

@testable import DendroTree

/// An editor makes the tree that the same writes make one by one, whatever it remembers between two of them.
@Suite struct TreeEditorTests {
  /// One database's branches: of several depths, one with a long path, one with many children.
  private static let branches = [
    "", "a", "posts/first", "posts/second", "posts/third/deep/er", "list",
    String(repeating: "x", count: 120),
  ]

  @Test(
    "runs of writes in one branch, beside copies and other writes", arguments: Scale.seeds(12))
  func neighbours(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keyCount = [4, 40, 2_000][Int(seed % 3)]
    let valueByteCountMax = [10, 80, 260][Int(seed / 3 % 3)]
    var editor = TreeEditor(.empty, remembersPlace: true)
    var other = Node.empty
    var held: [(node: Node, text: String)] = []
    for step in 0..<500 {
      let branch = Self.branches[random.below(Self.branches.count)]
      for _ in 0..<1 + random.below(12) {
        let path = try Path(
          parsing: "\(branch)/k\(random.oneIn(8) ? 0 : random.below(keyCount))")
        let write = write(at: path, valueByteCountMax, &random)
        _ = other.apply(write)
        editor.apply(write)
      }
      switch random.below(24) {
      case 0: held.append((editor.taken(), ModelTree(editor.taken()).description))
      case 1:
        let part = editor.taken().node(at: try Path(parsing: branch))
        held.append((part, ModelTree(part).description))
      case 2:
        let path = try Path(parsing: "\(branch)/k\(random.below(keyCount))")
        let below = try Path(parsing: "\(branch)/k0/x")
        for write in [Write.remove(path), .set(below, Node(.bool(true)))] {
          editor.apply(write)
          _ = other.apply(write)
        }
      case 3 where !held.isEmpty: held.removeLast()
      default: break
      }
      if step % 100 == 0 {
        let tree = editor.taken()
        try tree.checkInvariants(isCompact: true)
        try #require(tree == other, "seed \(seed), step \(step)")
        try #require(ModelTree(tree).description == ModelTree(other).description)
      }
    }
    let tree = editor.taken()
    try tree.checkInvariants(isCompact: true)
    #expect(tree == other, "seed \(seed)")
    for (node, text) in held {
      try node.checkInvariants(isCompact: true)
      #expect(ModelTree(node).description == text, "a held value changed, seed \(seed)")
    }
  }

  private func write(
    at path: Path, _ valueByteCountMax: Int, _ random: inout SeededGenerator
  ) -> Write {
    random.oneIn(3)
      ? .increment(path, .integer(Int64(random.below(3))))
      : .set(
        path, Node(.string(String(repeating: "v", count: random.below(valueByteCountMax) + 1))))
  }

  @Test(
    "any write as bytes and as trees, with and without memory: the same tree and the same changes",
    arguments: Scale.seeds(20))
  func forms(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    generator.stringByteCountMax = [10, 300][Int(seed % 2)]
    var remembering = TreeEditor(.empty, remembersPlace: true)
    var plain = TreeEditor(.empty, remembersPlace: false)
    var checked = TreeEditor(.empty, remembersPlace: false)
    var model = ModelTree.empty
    for step in 0..<600 {
      let write = generator.write()
      model.apply(write)
      let encoded = EncodedWrite(write)
      encoded.prepare(isLogged: true)
      let asTrees = encoded.withView { view in plain.changes(view) }
      let asBytes = encoded.withView { view -> [(path: Path, replaced: Node)] in
        let logBody = view.withLogBody { Array($0) }
        var checker = BodyChecker()
        var end = 0
        let depth = Limits.depth - write.path.count
        let facts = logBody.withUnsafeBytes {
          checker.check(view.kind, $0, at: &end, depth: depth)
        }
        guard let facts else {
          Issue.record("seed \(seed), step \(step): \(write)")
          return []
        }
        #expect(end == logBody.count)
        #expect(facts.entryCount == view.facts.entryCount)
        #expect(facts.removalCount == view.facts.removalCount)
        #expect(facts.isOrdered == view.facts.isOrdered, "\(write)")
        return logBody.withUnsafeBytes { body in
          let read = WriteView(view.kind, at: view.path, body: body, facts: facts)
          remembering.apply(read) { _, _ in }
          return checked.changes(read)
        }
      }
      #expect(asTrees.map(\.path) == asBytes.map(\.path), "seed \(seed), step \(step)")
      #expect(asTrees.map(\.replaced) == asBytes.map(\.replaced), "seed \(seed), step \(step)")
      if step % 60 == 0 {
        let tree = remembering.taken()
        try tree.checkInvariants(isCompact: true)
        try #require(tree == plain.root, "seed \(seed), step \(step)")
        try #require(tree == checked.root, "seed \(seed), step \(step)")
        try #require(ModelTree(tree) == model, "seed \(seed), step \(step)")
      }
    }
  }

  @Test(
    "siblings in one update, of a branch that is there or not, in pages of any size",
    arguments: Scale.seeds(16))
  func siblings(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keyByteCountMax = [3, 40, 600][Int(seed % 3)]
    let valueByteCountMax = [10, 100, 300][Int(seed / 3 % 3)]
    var editor = TreeEditor(.empty, remembersPlace: false)
    var model = ModelTree.empty
    var held: [(node: Node, text: String)] = []
    for step in 0..<120 {
      let base = try Path(parsing: ["", "base", "a/b"][random.below(3)])
      var entries: [Write.Entry] = []
      for _ in 0..<1 + random.below(4) {
        let parent = ["p", "q/r", "q/s/t", "p/below"][random.below(4)] + "\(random.below(6))"
        for _ in 0..<1 + random.below(random.oneIn(5) ? 150 : 8) {
          let key =
            "\(random.below(400))" + String(repeating: "k", count: random.below(keyByteCountMax))
          let text = String(repeating: "v", count: random.below(valueByteCountMax))
          let action: Write.Entry.Action =
            switch random.below(20) {
            case 0: .remove
            case 1: .increment(.integer(1))
            case 2: .set(Node(.string(text), priority: .integer(1)))
            default: .set(Node(.string(text)))
            }
          entries.append(.init(path: try Path(parsing: "\(parent)/\(key)"), action: action))
        }
      }
      var seen = Set<Path>()
      entries = entries.filter { seen.insert($0.path).inserted }.inOrder
      let write = Write.update(base, entries)
      if (try? write.validate()) == nil { continue }
      model.apply(write)
      var undo: [(path: Path, node: Node)] = []
      let before = editor.root
      // To compare texts takes most of the time.
      let (checksUndo, isHeld) = (random.oneIn(3), random.oneIn(10))
      let text = checksUndo || isHeld ? ModelTree(before).description : ""
      EncodedWrite(write).withView { view in
        editor.apply(view) { undo.append((Path(trusted: $0), Node($1))) }
      }
      let after = editor.root
      if step % Scale.stride(3) == 0 {
        try after.checkInvariants(isCompact: true)
        try #require(ModelTree(after) == model, "seed \(seed), step \(step)")
      }
      if checksUndo {
        var undone = after
        for (path, node) in undo.reversed() { undone.graft(node, at: path) }
        try #require(ModelTree(undone).description == text, "seed \(seed), step \(step)")
      }
      if isHeld { held.append((before, text)) }
    }
    #expect(ModelTree(editor.root) == model, "seed \(seed)")
    for (node, text) in held { #expect(ModelTree(node).description == text) }
  }

  @Test(
    "siblings one after the other in any order, of a branch that is there or not",
    arguments: Scale.seeds(16))
  func runs(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keyByteCountMax = [3, 40, 600][Int(seed % 3)]
    let valueByteCountMax = [10, 100, 300][Int(seed / 3 % 3)]
    var editor = TreeEditor(.empty, remembersPlace: true)
    var model = ModelTree.empty
    var held: [(node: Node, text: String)] = []
    for step in 0..<400 {
      let parent = ["p", "q/r", "q/s/t", "p/below"][random.below(4)] + "\(random.below(20))"
      if random.oneIn(4) {
        let removal = Write.remove(try Path(parsing: parent))
        model.apply(removal)
        editor.apply(removal)
      }
      for _ in 0..<1 + random.below(random.oneIn(10) ? 150 : 8) {
        let key =
          "\(random.below(100))" + String(repeating: "k", count: random.below(keyByteCountMax))
        let path = try Path(parsing: "\(parent)/\(key)")
        let write =
          random.oneIn(20)
          ? Write.increment(path, .integer(1))
          : .set(
            path, Node(.string(String(repeating: "v", count: random.below(valueByteCountMax)))))
        model.apply(write)
        editor.apply(write)
      }
      if !random.oneIn(10) { continue }
      let tree = editor.taken()
      try tree.checkInvariants(isCompact: true)
      try #require(ModelTree(tree) == model, "seed \(seed), step \(step)")
      if random.oneIn(3) { held.append((tree, ModelTree(tree).description)) }
    }
    #expect(ModelTree(editor.finish()) == model, "seed \(seed)")
    for (node, text) in held { #expect(ModelTree(node).description == text) }
  }

  @Test("the tree is not taken while a place in it is remembered")
  func takingTooEarly() async {
    await #expect(processExitsWith: .failure) {
      var editor = TreeEditor(.empty, remembersPlace: true)
      editor.apply(.set(try Path(parsing: "a/b"), Node(.integer(1))))
      editor.apply(.set(try Path(parsing: "a/c"), Node(.integer(1))))
      _ = editor.root
    }
  }
}

extension TreeEditor {
  fileprivate mutating func apply(_ write: Write) {
    EncodedWrite(write).withView { apply($0) { _, _ in } }
  }

  /// Applies a write, and says what it replaces.
  fileprivate mutating func changes(_ write: WriteView) -> [(path: Path, replaced: Node)] {
    var changes: [(path: Path, replaced: Node)] = []
    apply(write) { changes.append((Path(trusted: $0), Node($1))) }
    return changes
  }

  fileprivate mutating func taken() -> Node {
    settle()
    return root
  }
}
