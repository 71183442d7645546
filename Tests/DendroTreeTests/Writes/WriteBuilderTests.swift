import DendroTestSupport
import Testing

@testable import DendroTree

/// What a builder makes of values is what the same write as values encodes.
@Suite struct WriteBuilderTests {
  private static func bytes(_ view: WriteView) -> [UInt8] { view.withLogBody { Array($0) } }

  private static func bytes(_ write: Write) -> [UInt8] {
    let encoded = EncodedWrite(write)
    encoded.prepare(isLogged: true)
    return encoded.withView { bytes($0) }
  }

  /// Fills a builder with a node, its children in any order.
  private static func append(
    _ node: Node, to builder: borrowing WriteBuilder, _ random: inout SeededGenerator
  ) {
    let mark = builder.mark
    if node.isBranch {
      let branch = builder.beginBranch()
      var children: [(Key, Node)] = []
      node.forEachChild { children.append(($0, $1)) }
      children.shuffle(using: &random)
      for (key, child) in children {
        let begins = builder.beginChild(key.string)
        append(child, to: builder, &random)
        let hasValue = builder.endChild()
        #expect(begins && hasValue)
        if random.oneIn(6) {
          // Nothing is left of a child without a value.
          let begins = builder.beginChild("nothing")
          let hasChildren = builder.endBranch(builder.beginBranch())
          let hasValue = builder.endChild()
          #expect(begins && !hasChildren && !hasValue)
        }
      }
      let hasChildren = builder.endBranch(branch)
      #expect(hasChildren)
    } else if let scalar = node.scalar {
      builder.append(scalar)
    }
    if let priority = node.priority {
      builder.insertPriority(at: mark) { builder.append(priority) }
    }
  }

  @Test("sets and updates in any order", arguments: Scale.seeds(20))
  func differential(seed: UInt64) throws {
    var generator = WriteGenerator(seed: seed)
    generator.stringByteCountMax = [10, 300][Int(seed % 2)]
    var random = SeededGenerator(seed: seed)
    for step in 0..<300 {
      switch generator.write() {
      case .set(let path, let node) where !node.isEmpty:
        let builder = WriteBuilder()
        Self.append(node, to: builder, &random)
        let bytes = try builder.withSet(at: path) { view in
          EncodedWrite.keeping(view).prepare(isLogged: true)
          return Self.bytes(view)
        }
        #expect(bytes == Self.bytes(.set(path, node)), "seed \(seed), step \(step)")
      case .update(let base, let entries):
        let builder = WriteBuilder()
        for entry in entries.shuffled(using: &random) {
          switch entry.action {
          case .set(let node):
            builder.beginEntry(entry.path)
            Self.append(node, to: builder, &random)
          case .remove: builder.beginEntry(entry.path, .remove)
          case .increment(let delta):
            builder.beginEntry(entry.path, .increment)
            builder.append(delta.scalar)
          case .setPriority(let priority):
            builder.beginEntry(entry.path, .setPriority)
            if let priority {
              builder.appendPriority { builder.append(priority) }
            } else {
              builder.appendNoPriority()
            }
          }
          builder.endEntry()
        }
        let normal = entries.inOrder.map { entry -> Write.Entry in
          if case .set(let node) = entry.action, node.isEmpty {
            return .init(path: entry.path, action: .remove)
          }
          return entry
        }
        let bytes = try builder.withUpdate(at: base) { Self.bytes($0) }
        #expect(bytes == Self.bytes(.update(base, normal)), "seed \(seed), step \(step)")
      default: break
      }
    }
  }

  @Test("what is not valid has the error of the same write as values")
  func refused() throws {
    let deep = String(repeating: "/k", count: 33)
    for paths in [
      ["a", "a/b"], ["a/b", "a"], ["x", "x"], ["", "x"], [deep], ["b", "a/c", "a"],
    ] {
      let builder = WriteBuilder()
      for path in paths {
        _ = try builder.beginEntry(path)
        builder.append(Int64(1))
        builder.endEntry()
      }
      let entries = try paths.map {
        Write.Entry(path: try Path(parsing: $0), action: .set(Node(.integer(1))))
      }
      let expected = #expect(throws: ValidationError.self) {
        try Write.update(.root, entries.inOrder).validate()
      }
      var error: ValidationError?
      do throws(ValidationError) {
        try builder.withUpdate(at: .root) { _ in }
      } catch let problem {
        error = problem
      }
      #expect(error != nil && error?.message == expected?.message, "\(paths)")
    }
    #expect(throws: ValidationError.self) { _ = try WriteBuilder().beginEntry("a.b") }
    let tooDeep = try Path(parsing: deep)
    #expect(throws: ValidationError.self) { try WriteBuilder().withSet(at: tooDeep) { _ in } }
  }

  @Test("many entries in any order are put in order", arguments: 1...6 as ClosedRange<UInt64>)
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let builder = WriteBuilder()
    var paths = Set<String>()
    while paths.count < 2_000 {
      let number = random.below(100_000)
      paths.insert(
        [
          "k\(number)/f", "\(number)", "common/prefix/-N\(number)",
          "common/prefix/\(String(repeating: "l", count: number % 200))/\(number)",
        ][Int(seed) % 4])
    }
    for path in seed < 4 ? Array(paths) : paths.sorted() {
      _ = try builder.beginEntry(path)
      builder.append(path)
      builder.endEntry()
    }
    let base = try Path(parsing: "base")
    let write = try builder.withUpdate(at: base) { Draft(decoding: $0).write }
    guard case .update(_, let entries) = write else {
      Issue.record("no update")
      return
    }
    #expect(entries.count == 2_000)
    #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.path < $1.path })
    try write.validate()
  }

  @Test("a server value in every place is computed there, and nothing else changes")
  func serverValues() throws {
    let tree = try tree("{a:{n:5,x:1},b:2!7}")
    let builder = WriteBuilder()
    let mark = builder.mark
    let branch = builder.beginBranch()
    for (key, value) in [
      ("n", Draft.Deferred.Value.increment(.integer(3))), ("t", .timestamp),
      ("new", .increment(.double(0.5))),
    ] {
      _ = builder.beginChild(key)
      builder.append(value)
      _ = builder.endChild()
    }
    _ = builder.endBranch(branch)
    builder.insertPriority(at: mark) { builder.append(.timestamp) }
    let path = try Path(parsing: "a")
    let node = try builder.withSet(at: path) { view in
      tree.applying(EncodedWrite.keeping(view), time: 99).node(at: path)
    }
    #expect(node == (try self.tree("{n:8,new:0.5,t:99}!99")))
  }

  @Test("a builder does not wait for the pool while another thread has it")
  func takenPool() throws {
    var kind: WriteKind?
    // Another test may have the pool.
    while kind == nil {
      kind = try WriteScratch.withPool { _ in
        let builder = WriteBuilder()
        builder.append(Scalar.bool(true))
        return try builder.withSet(at: .root) { $0.kind }
      }
    }
    #expect(kind == .set)
  }

  private func tree(_ text: String) throws -> Node { try DendroTreeTests.tree(text) }
}
