import DendroTestSupport
import Testing

@testable import DendroTree

/// Trees that are written as chunks and read again, whole or a page at a time.
@Suite("Pages in chunks")
struct PageLoadingTests {
  /// A tree that has branches of all kinds, and the model of it.
  private static func trees(_ seed: UInt64) -> (Node, ModelTree, WriteGenerator) {
    var generator = WriteGenerator(seed: seed)
    generator.wideOneIn = [2, 3, 20][Int(seed % 3)]
    generator.wideKeyCount = [30, 400, 3_000][Int(seed / 3 % 3)]
    var node = Node.empty
    var model = ModelTree.empty
    for _ in 0..<400 {
      let write = generator.write()
      _ = node.apply(write)
      model.apply(write)
    }
    return (node, model, generator)
  }

  private static let seeds = Scale.seeds(20)

  private static func chunkByteLimit(_ seed: UInt64) -> Int { [60, 400, 3_000][Int(seed / 2 % 3)] }

  @Test("roots of every kind", arguments: [60, 3_000])
  func roots(chunkByteLimit: Int) throws {
    let long = String(repeating: "s", count: 300)
    var branch = Node.empty
    _ = branch.apply(.set(Path(keys: [try Key("x")]), Node(.string(long))))
    let roots: [Node] = [
      .empty, Node(.integer(1)), Node(.bool(true), priority: .string("p")), Node(.string(long)),
      Node(.string(long), priority: .double(0.5)), branch, branch.settingPriority(.string(long)),
    ]
    for root in roots {
      let list = try ChunkList(root, chunkByteLimit: chunkByteLimit)
      #expect(list.chunks.isEmpty == root.isEmpty && list.leafCount == root.leafCount())
      for tree in [try list.tree(), try list.wholeTree()] {
        #expect(tree == root && tree.priority == root.priority)
        try tree.checkInvariants(isCompact: true)
      }
    }
  }

  @Test("the whole tree, its leaves and its content", arguments: seeds)
  func whole(seed: UInt64) throws {
    let (node, model, _) = Self.trees(seed)
    let list = try ChunkList(node, chunkByteLimit: Self.chunkByteLimit(seed))
    let tree = try list.wholeTree()
    try tree.checkInvariants(isCompact: true)
    #expect(tree == node && ModelTree(tree) == model)
    #expect(list.leafCount == node.leafCount())
    var collector = ChunkList.Collector()
    node.contentHash(using: &collector)
    #expect(list.content == collector.bytes && collector.bytes == contentByTable(node))
    #expect(tree.memory().leafCount == node.memory().leafCount)
  }

  /// The bytes that the table at `contentHash(using:)` gives for a node.
  private func contentByTable(_ node: Node) -> [UInt8] {
    func packed(_ scalar: Scalar) -> [UInt8] {
      var bytes: [UInt8] = []
      if case .double(let value) = scalar, let integer = Int64(exactly: value) {
        PackedScalar.append(.integer(integer), to: &bytes)
      } else {
        PackedScalar.append(scalar, to: &bytes)
      }
      return bytes
    }
    var bytes: [UInt8] = []
    if node.isEmpty { return [0] }
    if let priority = node.priority { bytes += [0x30] + packed(priority) }
    if let scalar = node.scalar { return bytes + [1] + packed(scalar) }
    bytes.append(2)
    withUnsafeBytes(of: UInt64(node.childCount).littleEndian) { bytes += $0 }
    for (key, child) in node.children {
      key.withOrderedBytes { key in
        withUnsafeBytes(of: UInt16(key.count).littleEndian) { bytes += $0 }
        bytes += key
      }
      bytes += contentByTable(child)
    }
    return bytes
  }

  @Test("a tree that is read on the way, written to and written again", arguments: seeds)
  func onTheWay(seed: UInt64) throws {
    let (node, before, initialGenerator) = Self.trees(seed)
    var (model, generator) = (before, initialGenerator)
    let list = try ChunkList(node, chunkByteLimit: Self.chunkByteLimit(seed))
    var tree = try list.tree()
    let held = tree
    #expect(list.counts.loadedCount == 0)
    #expect(tree.childCount == node.childCount)
    for step in 0..<200 {
      let path = generator.path()
      #expect(
        ModelTree(tree.node(at: path)) == model.node(at: path.keys.map { Array($0.string.utf8) }),
        "seed \(seed), step \(step)")
      if step == 100 {
        // Neither reads nor keeps what is not in memory.
        let loadedCount = list.counts.loadedCount
        let again = try ChunkList(tree, chunkByteLimit: 200)
        #expect(list.counts.loadedCount == loadedCount)
        #expect(ModelTree(try again.wholeTree()) == model)
      }
      let write = generator.write()
      try EncodedWrite(write).withView { view in Result { try tree.load(for: view) } }.get()
      _ = tree.apply(write)
      model.apply(write)
      if step % 20 == 0 {
        var whole = tree
        try whole.load()
        try whole.checkInvariants(isCompact: true)
        try #require(ModelTree(tree) == model, "seed \(seed), step \(step)")
        whole = .empty
      }
    }
    #expect(list.counts.failureCount == 0)
    #expect(ModelTree(held) == before, "a held tree changed, seed \(seed)")
  }

  @Test("an edit of a leaf says that a page has to be read first", arguments: seeds)
  func edits(seed: UInt64) throws {
    let (node, _, _) = Self.trees(seed)
    let list = try ChunkList(node, chunkByteLimit: 60)
    var tree = try list.tree()
    var expected = node
    var unloadedCount = 0
    let leaves = node.stored().filter { $0.node.isLeaf && $0.node.priority == nil }
      .map(\.path.storedBytes)
    let packed: [UInt8] = [0x11, 0x07]
    for path in leaves {
      packed.withUnsafeBytes { packed in
        path.withUnsafeBytes { path in
          var outcome = tree.exchange(LeafEdit.set(packed), at: path) { _ in }
          if outcome == .unloaded {
            unloadedCount += 1
            #expect(throws: Never.self) { try tree.load(along: path) }
            outcome = tree.exchange(LeafEdit.set(packed), at: path) { _ in }
          }
          #expect(outcome == expected.exchange(LeafEdit.set(packed), at: path) { _ in })
        }
      }
    }
    #expect(tree == expected)
    #expect(unloadedCount > 0 || list.chunks.count < 3)
    try tree.checkInvariants(isCompact: true)
  }

  @Test("a glance says that a node is in memory only if it is", arguments: seeds)
  func glance(seed: UInt64) throws {
    let (node, _, generator) = Self.trees(seed)
    let list = try ChunkList(node, chunkByteLimit: 60)
    let tree = try list.tree()
    list.refuse(Set(0..<UInt32(list.chunks.count)))
    var other = generator
    for _ in 0..<200 {
      let path = other.path()
      guard (try? tree.load(along: path)) != nil else { continue }
      let found = tree.node(at: path)
      if found.isLoadedAtAGlance { #expect(throws: Never.self) { try found.load() } }
      if found.isLeaf { #expect(found.isLoadedAtAGlance) }
    }
  }

  @Test("pages that cannot be read", arguments: seeds)
  func refused(seed: UInt64) throws {
    let (node, _, initialGenerator) = Self.trees(seed)
    var generator = initialGenerator
    let list = try ChunkList(node, chunkByteLimit: 60)
    let tree = try list.tree()
    list.refuse(Set(0..<UInt32(list.chunks.count)))
    guard list.chunks.count > 1 else { return }
    #expect(throws: PageFailure.self) { try tree.load() }
    // Whatever is read without an error, nothing traps, and every failure is noted.
    let text = ModelTree(tree)
    #expect(text != ModelTree(node) && list.counts.failureCount > 0)
    var hasher = ChunkList.Collector()
    tree.contentHash(using: &hasher)
    for _ in 0..<100 {
      let failureCount = list.counts.failureCount
      let path = generator.path()
      let found = tree.node(at: path)
      if found != node.node(at: path) { #expect(list.counts.failureCount > failureCount) }
      #expect(tree.child(at: 0).key == tree.child(at: 0).key)
      _ = tree.reversedChildren.map(\.key)
      _ = tree.childCount { $0 < (path.last ?? $0) }
    }
    #expect(throws: PageFailure.self) { _ = try ChunkList(tree, chunkByteLimit: 60) }
    // Once they can be read again, they are.
    list.refuse([])
    try tree.load()
    #expect(tree == node)
  }

  @Test("several threads read one tree")
  func threads() async throws {
    let (node, model, _) = Self.trees(3)
    for limit in [60, 400] {
      let list = try ChunkList(node, chunkByteLimit: limit)
      let tree = try list.tree()
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<8 { group.addTask { ModelTree(tree) == model } }
        for await isEqual in group { #expect(isEqual) }
      }
      #expect(list.counts.loadedCount == list.chunks.count - 1)
    }
  }

  @Test("changed bytes make an error or a sound tree", arguments: seeds)
  func damage(seed: UInt64) throws {
    let (node, _, _) = Self.trees(seed)
    var random = SeededGenerator(seed: seed)
    let list = try ChunkList(node, chunkByteLimit: 400)
    var refusedCount = 0
    for _ in 0..<400 {
      var chunks = list.chunks
      let number = random.below(chunks.count)
      let place = random.below(chunks[number].count)
      switch random.below(3) {
      case 0: chunks[number][place] ^= 1 << UInt8(random.below(8))
      case 1: chunks[number].removeSubrange(place...)
      default: chunks[number].insert(UInt8(random.below(256)), at: place)
      }
      let damaged = ChunkList(chunks: chunks)
      do {
        _ = ModelTree(try damaged.wholeTree())
      } catch {
        refusedCount += 1
      }
      if let tree = try? damaged.tree() {
        _ = ModelTree(tree)
        var whole = tree
        if (try? whole.load()) != nil { _ = whole.apply(.remove(.root)) }
      }
    }
    #expect(refusedCount > 50)
  }
}
