package import DendroTree

/// The listeners by path: a trie, in which a commit finds those that it affects without visiting the others.
///
/// The hub's lock guards it.
package struct ListenerTree {
  package final class TrieNode {
    fileprivate private(set) var children = TrieChildren()
    /// The children in the order of their events. Made at the first commit that needs it, and kept until a
    /// child is added or removed.
    private var ordered: [(key: Key, node: TrieNode)]?
    /// The sort orders of this path's children in the data, shared by its listeners and subscriptions.
    fileprivate private(set) lazy var orders = OrderRegistry()
    /// The registrations at this path; nil where there is none.
    package fileprivate(set) var syncPoint: SyncPoint? {
      didSet { isListened = syncPoint != nil || !subscriptions.isEmpty }
    }
    /// The asynchronous iterators at this path.
    package fileprivate(set) var subscriptions: InsertionOrder<Subscription> {
      didSet { isListened = syncPoint != nil || !subscriptions.isEmpty }
    }
    /// Whether anything listens at exactly this path. Stored, since every commit on the way here asks.
    fileprivate private(set) var isListened = false

    fileprivate init(tally: StepTally) { subscriptions = InsertionOrder(tally: tally) }

    fileprivate func setChild(_ key: Key, _ child: TrieNode?) {
      children[key] = child
      ordered = nil
    }

    fileprivate var childrenInStringOrder: [(key: Key, node: TrieNode)] {
      if let ordered { return ordered }
      let new = ListenerTree.inStringOrder(children.keys).compactMap { key in
        children[key].map { (key: key, node: $0) }
      }
      ordered = new
      return new
    }

    fileprivate var isUnused: Bool { children.isEmpty && !isListened }
  }

  private let root: TrieNode
  private let tally: StepTally

  package init(tally: StepTally = StepTally()) {
    root = TrieNode(tally: tally)
    self.tally = tally
  }

  /// Whether there is no listener.
  package var isEmpty: Bool { root.isUnused }

  /// The listeners at exactly this path.
  package func syncPoint(at path: Path) -> SyncPoint? { trail(to: path)?.last?.syncPoint }

  /// Adds a sync point, of which there is at most one for each path.
  package func insert(_ syncPoint: SyncPoint) {
    trieNode(at: syncPoint.path).syncPoint = syncPoint
  }

  package func insert(_ subscription: Subscription) {
    trieNode(at: subscription.path).subscriptions.append(subscription)
  }

  /// Removes a sync point if it is there.
  ///
  /// - Complexity: O(length of the path), as for subscriptions.
  package func remove(_ syncPoint: SyncPoint) {
    remove(at: syncPoint.path) { if $0.syncPoint === syncPoint { $0.syncPoint = nil } }
  }

  /// Removes a subscription if it is there.
  package func remove(_ subscription: Subscription) {
    remove(at: subscription.path) { $0.subscriptions.remove(subscription.id) }
  }

  /// The sort orders of the children at this path. Makes the path's trie node, which a listener then keeps.
  func orders(at path: Path) -> OrderRegistry { trieNode(at: path).orders }

  /// The sort orders of the children at this path; nil where nothing listens there.
  func existingOrders(at path: Path) -> OrderRegistry? { trail(to: path)?.last?.orders }

  private func trieNode(at path: Path) -> TrieNode {
    var node = root
    for key in path.keys {
      if let next = node.children[key] {
        node = next
      } else {
        let next = TrieNode(tally: tally)
        node.setChild(key, next)
        node = next
      }
    }
    return node
  }

  /// The trie nodes from the root to the path; nil where the path has none.
  private func trail(to path: Path) -> [TrieNode]? {
    var trail = [root]
    for key in path.keys {
      guard let next = trail[trail.count - 1].children[key] else { return nil }
      trail.append(next)
    }
    return trail
  }

  /// Changes the trie node at a path, and removes it and its ancestors where they are no longer used.
  private func remove(at path: Path, _ body: (TrieNode) -> Void) {
    guard let trail = trail(to: path) else { return }
    body(trail[trail.count - 1])
    let keys = Array(path.keys)
    for depth in stride(from: keys.count, to: 0, by: -1) {
      guard trail[depth].isUnused else { return }
      trail[depth - 1].setChild(keys[depth - 1], nil)
    }
  }

  // MARK: Which listeners a commit affects

  /// Calls `body` with each trie node above, at and below the changed paths that has listeners, with the data
  /// there, and with the key of the only child that may have changed, if it is known: descendants before
  /// ancestors, siblings in plain string order.
  ///
  /// - Complexity: O(length of the paths + trie nodes at and below them), however many listeners there are
  ///   elsewhere. For a single path without listeners nothing is allocated, and no data is read.
  package func forEachAffected(
    by path: Path, and others: [Path] = [], root node: Node,
    _ body: (TrieNode, Node, Key?) -> Void
  ) {
    if others.isEmpty {
      var keys = path.keys.makeIterator()
      visit(root, path, &keys, depth: 0, node, body)
    } else {
      visit(root, ([path] + others).map { Array($0.keys)[...] }, node, body)
    }
  }

  /// - Parameter root: the data at the root, of which only what listeners get is looked up.
  private func visit(
    _ trieNode: TrieNode, _ path: Path, _ keys: inout Path.Keys.Iterator, depth: Int, _ root: Node,
    _ body: (TrieNode, Node, Key?) -> Void
  ) {
    guard let key = keys.next() else {
      if trieNode.isUnused { return }
      return visitAll(trieNode, root.node(at: path), body)
    }
    if let next = trieNode.children[key] { visit(next, path, &keys, depth: depth + 1, root, body) }
    if trieNode.isListened { body(trieNode, root.node(at: path, keyCount: depth), key) }
  }

  private func visit(
    _ trieNode: TrieNode, _ paths: [ArraySlice<Key>], _ node: Node,
    _ body: (TrieNode, Node, Key?) -> Void
  ) {
    if paths.contains(where: \.isEmpty) { return visitAll(trieNode, node, body) }
    if !trieNode.children.isEmpty {
      var concerned: [Key: [ArraySlice<Key>]] = [:]
      for path in paths {
        guard let key = path.first, trieNode.children[key] != nil else { continue }
        concerned[key, default: []].append(path.dropFirst())
      }
      for key in Self.inStringOrder(concerned.keys) {
        if let next = trieNode.children[key], let rest = concerned[key] {
          visit(next, rest, node.child(key), body)
        }
      }
    }
    if trieNode.isListened { body(trieNode, node, nil) }
  }

  private func visitAll(
    _ trieNode: TrieNode, _ node: Node, _ body: (TrieNode, Node, Key?) -> Void
  ) {
    for (key, next) in trieNode.childrenInStringOrder { visitAll(next, node.child(key), body) }
    if trieNode.isListened { body(trieNode, node, nil) }
  }

  /// Not the order of keys: here 10 comes before 9, as in Firebase's SDKs.
  fileprivate static func inStringOrder(_ keys: some Collection<Key>) -> [Key] {
    guard keys.count > 1 else { return Array(keys) }
    return keys.map { (key: $0, units: Array($0.string.utf16)) }
      .sorted { $0.units.lexicographicallyPrecedes($1.units) }
      .map(\.key)
  }
}
