import Dendro
import DendroTree
import DendroTestSupport
import Testing

/// The registry against one that is so plain that it is obviously right.
@Suite("What is registered for going offline")
struct DisconnectOperationsTests {
  /// A list of operations by path, in which every rule is a search through all of them.
  struct Model {
    typealias Steps = [[UInt8]]
    var values: [Steps: ModelTree] = [:]
    var priorities: [Steps: Scalar?] = [:]

    private func valueAtOrAbove(_ steps: Steps) -> Steps? {
      values.keys.first { steps.starts(with: $0) }
    }

    mutating func set(_ tree: ModelTree, at steps: Steps) {
      if let above = valueAtOrAbove(steps), above != steps {
        values[above]?.assign(tree, at: steps[above.count...])
        return
      }
      forget(steps)
      values[steps] = tree
    }

    mutating func setPriority(_ priority: Scalar?, at steps: Steps) {
      guard let above = valueAtOrAbove(steps) else {
        priorities[steps] = .some(priority)
        return
      }
      let rest = steps[above.count...]
      guard var node = values[above]?.node(at: Array(rest)), !node.isEmpty else { return }
      node.priority = priority
      values[above]?.assign(node, at: rest)
    }

    mutating func cancel(_ steps: Steps) {
      while let above = valueAtOrAbove(steps), above != steps, let whole = values[above] {
        if whole.scalar != nil { return }
        values[above] = nil
        if let priority = whole.priority { priorities[above] = .some(priority) }
        for (key, child) in whole.children { values[above + [key]] = child }
      }
      forget(steps)
    }

    private mutating func forget(_ steps: Steps) {
      for other in values.keys where other.starts(with: steps) { values[other] = nil }
      for other in priorities.keys where other.starts(with: steps) { priorities[other] = nil }
    }

    mutating func add(_ write: Write) {
      switch write {
      case .set(let path, let node): set(ModelTree(node), at: ModelTree.path(path))
      case .remove(let path): set(.empty, at: ModelTree.path(path))
      case .increment(let path, let number):
        set(ModelTree(Node(number.incrementing(nil))), at: ModelTree.path(path))
      case .setPriority(let path, let priority): setPriority(priority, at: ModelTree.path(path))
      case .update(let base, let entries):
        for isPriority in [false, true] {
          for entry in entries {
            let path = base.appending(entry.path)
            switch entry.action {
            case .setPriority(let priority) where isPriority: add(.setPriority(path, priority))
            case .set(let node) where !isPriority: add(.set(path, node))
            case .remove where !isPriority: add(.remove(path))
            case .increment(let number) where !isPriority: add(.increment(path, number))
            default: break
            }
          }
        }
      }
    }

    var lines: [String] {
      var lines = values.map { "\(Self.text($0.key)) = \($0.value)" }
      lines += priorities.map { steps, priority in
        "\(Self.text(steps)) ! \(priority.map { "\($0)" } ?? "none")"
      }
      return lines.sorted()
    }

    private static func text(_ steps: Steps) -> String {
      steps.map { "/" + String(decoding: $0, as: UTF8.self) }.joined()
    }
  }

  /// A time and increments that nothing else is equal to.
  private static let time: Int64 = 1_700_000_000_000

  private static func lines(of operations: DisconnectOperations) throws -> [String] {
    guard let draft = operations.draft else { return [] }
    try draft.write.validate()
    guard case .update(let base, let entries) = draft.resolved(time: time, against: .empty) else {
      return ["no update"]
    }
    var model = Model()
    for entry in entries {
      // Through the model only to be shown alike: no path is at or below another one.
      let steps = ModelTree.path(base.appending(entry.path))
      switch entry.action {
      case .set(let node): model.values[steps] = ModelTree(node)
      case .remove: model.values[steps] = .empty
      case .increment(let number): model.values[steps] = ModelTree(Node(number.incrementing(nil)))
      case .setPriority(let priority): model.priorities[steps] = .some(priority)
      }
    }
    return model.lines
  }

  private static func path(_ random: inout SeededGenerator) throws -> Path {
    let names = ["a", "b", "1"]
    return Path(keys: try (0..<random.below(5)).map { _ in try Key(names[random.below(3)]) })
  }

  /// A tree in which some leaves and priorities are server values.
  private static func tree(
    _ random: inout SeededGenerator, at path: Path, depth: Int, _ deferred: inout [Draft.Deferred]
  ) throws -> Node {
    var node = Node.empty
    if depth > 0, !random.oneIn(3) {
      for name in ["a", "b", "1"] where random.oneIn(2) {
        let key = try Key(name)
        let child = try tree(
          &random, at: path.appending(key), depth: depth - 1, &deferred)
        if !child.isEmpty { node.graft(child, at: Path(keys: [key])) }
      }
      if node.isEmpty { return node }
    } else if random.oneIn(5) {
      return node
    } else if random.oneIn(2) {
      deferred.append(
        Draft.Deferred(
          path: path,
          value: random.oneIn(2)
            ? .timestamp : .increment(.integer(1_000_000 + Int64(random.below(1_000_000))))))
      node = Node(.integer(0))
    } else {
      node = Node(.integer(Int64(random.below(1000))))
    }
    if random.oneIn(3) {
      node = node.settingPriority(.integer(Int64(random.below(10))))
      if random.oneIn(2) {
        deferred.append(Draft.Deferred(path: path, isPriority: true, value: .timestamp))
      }
    }
    return node
  }

  private static func draft(_ random: inout SeededGenerator) throws -> Draft {
    let path = try path(&random)
    var deferred: [Draft.Deferred] = []
    switch random.below(6) {
    case 0: return Draft(.remove(path))
    case 1: return Draft(.increment(path, .integer(7)))
    case 2:
      if random.oneIn(2) {
        deferred.append(Draft.Deferred(path: .root, isPriority: true, value: .timestamp))
      }
      let isNone = deferred.isEmpty && random.oneIn(3)
      return Draft(.setPriority(path, isNone ? nil : .integer(3)), deferred: deferred)
    case 3:
      var entries: [Write.Entry] = []
      for _ in 0..<random.below(5) {
        let relative = try Self.path(&random)
        if random.oneIn(4) {
          entries.append(.init(path: relative, action: .setPriority(.string("p"))))
          if random.oneIn(2) {
            deferred.append(Draft.Deferred(path: relative, isPriority: true, value: .timestamp))
          }
        } else {
          let before = deferred.count
          let node = try tree(&random, at: relative, depth: 2, &deferred)
          if node.isEmpty { deferred.removeSubrange(before...) }
          entries.append(
            .init(path: relative, action: node.isEmpty ? .remove : .set(node)))
        }
      }
      let update = Draft(.update(path, entries), deferred: deferred)
      // Paths that contradict each other are refused before they come here.
      do throws(ValidationError) { try update.write.validate() } catch {
        return Draft(.remove(path))
      }
      return update
    default:
      let node = try tree(&random, at: .root, depth: 3, &deferred)
      return node.isEmpty ? Draft(.remove(path)) : Draft(.set(path, node), deferred: deferred)
    }
  }

  @Test("as the plain model has it, whatever comes", arguments: 0..<300 as Range<UInt64>)
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var operations = DisconnectOperations()
    var model = Model()
    for step in 0..<30 {
      if random.oneIn(4) {
        let path = try Self.path(&random)
        operations.cancel(path)
        model.cancel(ModelTree.path(path))
      } else {
        let draft = try Self.draft(&random)
        operations.add(draft)
        model.add(draft.resolved(time: Self.time, against: .empty))
      }
      let lines = try Self.lines(of: operations)
      try #require(lines == model.lines, "seed \(seed), step \(step)")
      #expect(operations.isEmpty == lines.isEmpty)
    }
  }
}
