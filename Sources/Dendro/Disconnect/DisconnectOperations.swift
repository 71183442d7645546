package import DendroTree

/// The operations to be written when the database is taken offline: a value or a priority at each path.
///
/// No operation has another one at its path or below: a value replaces those there and below, and a later one
/// below a value becomes a part of it. So together they are one update whose paths do not contradict each
/// other.
package struct DisconnectOperations: Sendable {
  private var root = TrieNode()

  package init() {}

  package var isEmpty: Bool { root.isEmpty }

  /// Adds what a write would do. The entries of an update are added data first, then priorities.
  ///
  /// - Complexity: O(depth), and O(size of the value) where it becomes a part of one above.
  package mutating func add(_ draft: Draft) {
    switch draft.write {
    case .set(let path, let node): root.set(Value(node, draft.deferred), at: path.steps)
    case .remove(let path): root.set(Value(.empty), at: path.steps)
    case .increment(let path, let number): root.set(Value(number), at: path.steps)
    case .setPriority(let path, let priority):
      root.setPriority(Priority(priority, draft.deferred.first?.value), at: path.steps)
    case .update(let base, let entries): add(entries, draft.deferred, below: base)
    }
  }

  private mutating func add(
    _ entries: [Write.Entry], _ deferred: [Draft.Deferred], below base: Path
  ) {
    let deferred = DeferredByEntry(deferred, entries)
    for entry in entries {
      let steps = base.appending(entry.path).steps
      switch entry.action {
      case .set(let node): root.set(Value(node, deferred.values(below: entry.path)), at: steps)
      case .remove: root.set(Value(.empty), at: steps)
      case .increment(let number): root.set(Value(number), at: steps)
      case .setPriority: break
      }
    }
    for entry in entries {
      if case .setPriority(let priority) = entry.action {
        let steps = base.appending(entry.path).steps
        root.setPriority(Priority(priority, deferred.priority(at: entry.path)), at: steps)
      }
    }
  }

  /// Removes the operations at `path` and below. A value above is split: its other children stay as
  /// operations of their own, and so does its priority. A scalar above has no parts and stays.
  package mutating func cancel(_ path: Path) { root.cancel(path.steps) }

  /// All operations as one update of the root; nil where there are none.
  ///
  /// - Complexity: O(operations).
  package var draft: Draft? {
    var entries: [Write.Entry] = []
    var deferred: [Draft.Deferred] = []
    root.collect(at: .root, &entries, &deferred)
    return entries.isEmpty ? nil : Draft(.update(.root, entries), deferred: deferred)
  }
}

extension DisconnectOperations {
  /// A value to be set; the empty node removes. Its server values are resolved when it is written.
  fileprivate struct Value {
    var node: Node
    var deferred: DeferredValues

    init(_ node: Node, _ deferred: DeferredValues) {
      self.node = node
      self.deferred = deferred
    }

    /// The paths of the deferred values are relative to the value's.
    init(_ node: Node, _ deferred: [Draft.Deferred] = []) {
      self.init(node, DeferredValues(deferred, in: node))
    }

    init(_ increment: Number) {
      self.init(
        Node(Draft.Deferred.standIn), [Draft.Deferred(path: .root, value: .increment(increment))])
    }

    /// Makes a later value a part of this one.
    mutating func merge(_ part: Value, at path: Path) {
      node.graft(part.node, at: path)
      deferred.replace(at: path, by: part.deferred, in: node)
    }

    mutating func setPriority(_ priority: Priority, at path: Path) {
      if node.node(at: path).isEmpty { return }
      _ = node.apply(.setPriority(path, priority.scalar))
      deferred.replacePriority(at: path, by: priority.deferred)
    }
  }

  fileprivate struct Priority {
    var scalar: Scalar?
    var deferred: Draft.Deferred.Value?

    init(_ scalar: Scalar?, _ deferred: Draft.Deferred.Value?) {
      self.scalar = scalar
      self.deferred = deferred
    }
  }

  /// One path of the trie of operations. A node with a value has no children.
  fileprivate struct TrieNode {
    var value: Value?
    var priority: Priority?
    var children: [Key: TrieNode] = [:]

    var isEmpty: Bool { value == nil && priority == nil && children.isEmpty }

    mutating func set(_ new: Value, at steps: ArraySlice<Key>) {
      guard let key = steps.first else {
        self = TrieNode(value: new)
        return
      }
      if value != nil {
        value?.merge(new, at: Path(keys: steps))
      } else {
        children[key, default: TrieNode()].set(new, at: steps.dropFirst())
      }
    }

    mutating func setPriority(_ new: Priority, at steps: ArraySlice<Key>) {
      if value != nil {
        value?.setPriority(new, at: Path(keys: steps))
      } else if let key = steps.first {
        children[key, default: TrieNode()].setPriority(new, at: steps.dropFirst())
      } else {
        priority = new
      }
    }

    mutating func cancel(_ steps: ArraySlice<Key>) {
      guard let key = steps.first else {
        self = TrieNode()
        return
      }
      if let whole = value {
        if whole.node.isLeaf { return }
        self = TrieNode(partsOf: whole)
      }
      children[key]?.cancel(steps.dropFirst())
      if children[key]?.isEmpty == true { children[key] = nil }
    }

    func collect(
      at path: Path, _ entries: inout [Write.Entry], _ deferred: inout [Draft.Deferred]
    ) {
      if let value {
        entries.append(
          Write.Entry(path: path, action: value.node.isEmpty ? .remove : .set(value.node)))
        for var item in value.deferred.list {
          item.path = path.appending(item.path)
          deferred.append(item)
        }
      }
      if let priority {
        entries.append(Write.Entry(path: path, action: .setPriority(priority.scalar)))
        if let value = priority.deferred {
          deferred.append(Draft.Deferred(path: path, isPriority: true, value: value))
        }
      }
      for (key, child) in children.sorted(by: { $0.key < $1.key }) {
        child.collect(at: path.appending(key), &entries, &deferred)
      }
    }
  }

  /// Server values by the entry of the update that they belong to.
  private struct DeferredByEntry {
    private var valuesByPath: [Path: [Draft.Deferred]] = [:]
    private var priorities: [Path: Draft.Deferred.Value] = [:]

    init(_ deferred: [Draft.Deferred], _ entries: [Write.Entry]) {
      if deferred.isEmpty { return }
      var dataPaths: Set<Path> = []
      for entry in entries {
        if case .set = entry.action { dataPaths.insert(entry.path) }
      }
      for var item in deferred {
        // At most 32 steps down, whatever the number of entries.
        let owner = (0...item.path.count).lazy.map(item.path.prefix).first(
          where: dataPaths.contains)
        if let owner, let relative = item.path.relative(to: owner) {
          item.path = relative
          valuesByPath[owner, default: []].append(item)
        } else if item.isPriority {
          priorities[item.path] = item.value
        }
      }
    }

    func values(below path: Path) -> [Draft.Deferred] { valuesByPath[path] ?? [] }
    func priority(at path: Path) -> Draft.Deferred.Value? { priorities[path] }
  }
}

extension DisconnectOperations.TrieNode {
  /// The children of a value as trie nodes of their own.
  fileprivate init(partsOf whole: DisconnectOperations.Value) {
    if let scalar = whole.node.priority {
      priority = DisconnectOperations.Priority(scalar, whole.deferred.priority)
    }
    whole.node.forEachChild { key, child in
      children[key] = DisconnectOperations.TrieNode(
        value: DisconnectOperations.Value(
          child, whole.deferred.children[key] ?? DeferredValues()))
    }
  }
}
