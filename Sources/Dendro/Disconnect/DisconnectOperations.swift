package import DendroTree

/// The operations to be written when the database is taken offline: a value or a priority at each path.
///
/// No operation has another one at its path or below: a value replaces those there and below, and a later one
/// below a value becomes a part of it. So together they are one update whose paths do not contradict each
/// other.
package struct DisconnectOperations: Sendable {
  private var root = TrieNode()
  /// About the bytes that the operations take.
  package private(set) var byteCount = 0
  /// `byteCount`, counted anew: for tests.
  var countedByteCount: Int { root.byteCount }

  package init() {}

  /// Adds what a write would do, unless the operations would take more than so many bytes then.
  ///
  /// - Returns: whether it was added.
  /// - Complexity: as `add(_:)`; near the limit also O(operations beside it).
  package mutating func add(_ draft: Draft, upTo byteLimit: Int) -> Bool {
    var alone = DisconnectOperations()
    alone.add(draft)
    if byteCount + alone.byteCount <= byteLimit {
      add(draft)
      return true
    }
    // It may replace what is there.
    var changed = self
    changed.add(draft)
    guard changed.byteCount <= byteLimit else { return false }
    self = changed
    return true
  }

  /// `cancel(_:)`, unless the operations would take more than so many bytes then: parts of a value take more than the
  /// value.
  ///
  /// - Returns: whether it was done.
  package mutating func cancel(_ path: Path, upTo byteLimit: Int) -> Bool {
    guard byteCount + root.splitByteCount(path.steps) <= byteLimit else { return false }
    cancel(path)
    return true
  }

  package var isEmpty: Bool { root.isEmpty }

  /// Adds what a write would do. The entries of an update are added data first, then priorities.
  ///
  /// - Complexity: O(depth), and O(size of the value) if it becomes a part of one above.
  package mutating func add(_ draft: Draft) {
    switch draft.write {
    case .set(let path, let node): set(Value(node, draft.deferred), at: path)
    case .remove(let path): set(Value(.empty), at: path)
    case .increment(let path, let number): set(Value(number), at: path)
    case .setPriority(let path, let priority):
      setPriority(Priority(priority, draft.deferred.first?.value), at: path)
    case .update(let base, let entries): add(entries, draft.deferred, below: base)
    }
  }

  private mutating func set(_ value: Value, at path: Path) {
    byteCount += root.set(value, at: path.steps)
  }

  private mutating func setPriority(_ priority: Priority, at path: Path) {
    byteCount += root.setPriority(priority, at: path.steps)
  }

  private mutating func add(
    _ entries: [Write.Entry], _ deferred: [Draft.Deferred], below base: Path
  ) {
    let deferred = DeferredByEntry(deferred, entries)
    for entry in entries {
      let path = base.appending(entry.path)
      switch entry.action {
      case .set(let node): set(Value(node, deferred.values(below: entry.path)), at: path)
      case .remove: set(Value(.empty), at: path)
      case .increment(let number): set(Value(number), at: path)
      case .setPriority: break
      }
    }
    for entry in entries {
      if case .setPriority(let priority) = entry.action {
        setPriority(
          Priority(priority, deferred.priority(at: entry.path)), at: base.appending(entry.path))
      }
    }
  }

  /// Removes the operations at `path` and below. A value above is split: its other children stay as
  /// operations of their own, and so does its priority. A scalar above has no parts and stays.
  package mutating func cancel(_ path: Path) { byteCount += root.cancel(path.steps) }

  /// All operations as one update of the root; nil if there are none.
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
  /// One path of the trie of operations. A node with a value has no children.
  fileprivate struct TrieNode {
    var value: Value?
    var priority: Priority?
    var children: [Key: TrieNode] = [:]

    var isEmpty: Bool { value == nil && priority == nil && children.isEmpty }

    /// About the bytes that a node takes beside its key.
    private static let nodeByteCount = 64

    /// About the bytes of the value, of the priority, and of what is below.
    ///
    /// - Complexity: O(values and nodes).
    var byteCount: Int {
      children.reduce((value?.byteCount ?? 0) + (priority?.byteCount ?? 0)) {
        $0 + Self.byteCount(of: $1.key) + $1.value.byteCount
      }
    }

    private static func byteCount(of key: Key) -> Int { key.orderedByteCount + nodeByteCount }

    /// Calls `body` with a child, which it changes, and removes the child if it is empty then.
    ///
    /// - Parameter body: returns by how much the child's `byteCount` has grown.
    /// - Returns: by how much the `byteCount` of this node has grown.
    private mutating func changeChild(
      _ key: Key, _ body: (inout TrieNode) -> Int
    ) -> Int {
      let wasThere = children[key] != nil
      let growth = body(&children[key, default: TrieNode()])
      if children[key]?.isEmpty == true {
        children[key] = nil
        return growth - (wasThere ? Self.byteCount(of: key) : 0)
      }
      return growth + (wasThere ? 0 : Self.byteCount(of: key))
    }

    /// Changes the node itself.
    ///
    /// - Returns: by how much its `byteCount` has grown.
    private mutating func change(_ body: (inout TrieNode) -> Void) -> Int {
      let before = byteCount
      body(&self)
      return byteCount - before
    }

    // Each of these returns by how much the `byteCount` has grown.

    mutating func set(_ new: Value, at steps: ArraySlice<Key>) -> Int {
      guard let key = steps.first else { return change { $0 = TrieNode(value: new) } }
      if value != nil { return value?.merge(new, at: Path(keys: steps)) ?? 0 }
      return changeChild(key) { $0.set(new, at: steps.dropFirst()) }
    }

    mutating func setPriority(_ new: Priority, at steps: ArraySlice<Key>) -> Int {
      if value != nil { return value?.setPriority(new, at: Path(keys: steps)) ?? 0 }
      guard let key = steps.first else {
        defer { priority = new }
        return new.byteCount - (priority?.byteCount ?? 0)
      }
      return changeChild(key) { $0.setPriority(new, at: steps.dropFirst()) }
    }

    mutating func cancel(_ steps: ArraySlice<Key>) -> Int {
      guard let key = steps.first else { return change { $0 = TrieNode() } }
      if let whole = value {
        if whole.node.isLeaf { return 0 }
        return change { node in
          node = TrieNode(partsOf: whole)
          _ = node.cancel(steps)
        }
      }
      guard children[key] != nil else { return 0 }
      return changeChild(key) { $0.cancel(steps.dropFirst()) }
    }

    /// About the bytes by which `cancel` would make the operations larger, if it splits a value.
    ///
    /// - Complexity: O(depth · log children).
    func splitByteCount(_ steps: ArraySlice<Key>) -> Int {
      guard let key = steps.first else { return 0 }
      guard var node = value?.node else {
        return children[key]?.splitByteCount(steps.dropFirst()) ?? 0
      }
      var count = 0
      for key in steps where node.isBranch {
        count += node.childCount * 2 * Self.nodeByteCount
        node = node.child(key)
      }
      return count
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
