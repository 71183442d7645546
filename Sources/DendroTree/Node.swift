/// A tree: nothing, a leaf, or a branch with ordered children, and its priority.
///
/// A persistent value: a copy is O(1) and shares everything; a change copies only what another
/// value shares. A branch has at least one child, and no child is empty. Any thread; one value must
/// not be changed by two at once.
package struct Node: Sendable {
  enum Content: Sendable {
    case empty
    case scalar(Scalar)
    case branch(SortedChildren)
  }

  var content: Content
  var ownPriority: Scalar?

  init(content: Content, priority: Scalar?) {
    self.content = content
    ownPriority = priority
  }

  /// Nothing: the same as a location that does not exist.
  package static let empty = Node(content: .empty, priority: nil)

  package init(_ scalar: Scalar, priority: Scalar? = nil) {
    self.init(content: .scalar(scalar), priority: priority)
  }

  package var isEmpty: Bool { if case .empty = content { true } else { false } }
  package var isLeaf: Bool { if case .scalar = content { true } else { false } }
  package var isBranch: Bool { if case .branch = content { true } else { false } }

  /// What a leaf holds; nil for other nodes.
  package var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }

  /// A number or a string, if the node has a priority.
  package var priority: Scalar? { ownPriority }

  /// The number of direct children.
  package var childCount: Int {
    if case .branch(let children) = content { children.entries.count } else { 0 }
  }

  package func child(_ key: Key) -> Node {
    guard case .branch(let children) = content else { return .empty }
    let (index, found) = children.find(key)
    return found ? children.entries[index].node : .empty
  }

  package func node(at path: Path) -> Node {
    var node = self
    for key in path.keys {
      node = node.child(key)
      if node.isEmpty { break }
    }
    return node
  }

  /// The same node with another priority; the empty node never has one.
  package func settingPriority(_ priority: Scalar?) -> Node {
    isEmpty ? self : Node(content: content, priority: priority)
  }

  /// Whether both are the same storage, which implies that they are equal. Leaves that are held
  /// outside of any tree have none: then it is whether they are equal and spelled alike.
  package func isIdentical(to other: Node) -> Bool {
    switch (content, other.content) {
    case (.branch(let a), .branch(let b)): a === b && ownPriority == other.ownPriority
    case (.empty, .empty): true
    case (.scalar(let a), .scalar(let b)): a == b && ownPriority == other.ownPriority
    default: false
    }
  }

  /// Calls `body` with each child in the order of keys.
  package func forEachChild<E: Error>(_ body: (Key, Node) throws(E) -> Void) throws(E) {
    guard case .branch(let children) = content else { return }
    for entry in children.entries { try body(entry.key, entry.node) }
  }
}

/// Ordered children in one array.
final class SortedChildren: Sendable {
  let entries: [(key: Key, node: Node)]
  init(_ entries: [(key: Key, node: Node)]) { self.entries = entries }

  func find(_ key: Key) -> (index: Int, found: Bool) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return (low, low < entries.count && entries[low].key == key)
  }
}

extension Node {
  /// Makes `new` the node at `path`, as the table of assignments in <doc:DataModel> tells.
  mutating func assign(_ new: Node, at path: Path) {
    assign(new, at: Array(path.keys)[...])
  }

  private mutating func assign(_ new: Node, at keys: ArraySlice<Key>) {
    guard let key = keys.first else {
      self = new
      return
    }
    var child = child(key)
    child.assign(new, at: keys.dropFirst())
    if child.isEmpty && !isBranch { return }
    var entries: [(key: Key, node: Node)] = []
    if case .branch(let children) = content { entries = children.entries }
    let (index, found) = SortedChildren(entries).find(key)
    if found { entries.remove(at: index) }
    if !child.isEmpty { entries.insert((key, child), at: index) }
    self =
      entries.isEmpty
      ? .empty : Node(content: .branch(SortedChildren(entries)), priority: ownPriority)
  }
}

extension Node {
  /// Children in order.
  package struct Children: Sequence, Sendable {
    let entries: [(key: Key, node: Node)]

    package func makeIterator() -> Iterator { Iterator(entries: entries) }

    package struct Iterator: IteratorProtocol, Sendable {
      let entries: [(key: Key, node: Node)]
      var next_ = 0
      init(entries: [(key: Key, node: Node)]) { self.entries = entries }
      package mutating func next() -> (key: Key, node: Node)? {
        guard next_ < entries.count else { return nil }
        defer { next_ += 1 }
        return entries[next_]
      }
    }
  }

  private var entries: [(key: Key, node: Node)] {
    if case .branch(let children) = content { children.entries } else { [] }
  }
  /// All children in the order of keys.
  package var children: Children { Children(entries: entries) }
  /// The children at `key` and above, in the order of keys.
  package func children(from key: Key) -> Children {
    Children(entries: entries.filter { $0.key >= key })
  }
  /// All children, the last key first.
  package var reversedChildren: Children { Children(entries: entries.reversed()) }
  /// The children at `key` and below, the last key first.
  package func reversedChildren(from key: Key) -> Children {
    Children(entries: entries.reversed().filter { $0.key <= key })
  }
}

/// Builds the children of one branch.
///
/// Any order will do; ascending is fast. Of several nodes at one key the last holds, be it empty.
package struct NodeBuilder {
  private var node = Node.empty
  package init() {}
  package mutating func append(_ key: Key, _ child: Node) {
    node.assign(child, at: Path(keys: [key]))
  }
  /// The branch, or the empty node if no child is left.
  package consuming func finish(priority: Scalar? = nil) -> Node { node.settingPriority(priority) }
}

extension Node {
  package func checkInvariants() throws {}
  package func memory() -> TreeMemory { TreeMemory() }
}
