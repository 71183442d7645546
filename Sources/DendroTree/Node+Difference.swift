extension Node {
  /// Calls `body` with each of the smallest places where two trees differ, in the order of paths.
  ///
  /// A place is a leaf, a subtree that only one of them has, or a branch whose priority differs
  /// (then with all that is in it). What the two share is skipped unread.
  ///
  /// - Complexity: O(nodes that the two do not share).
  package static func difference<E: Error>(
    from old: Node, to new: Node, _ body: (Path, _ old: Node, _ new: Node) throws(E) -> Void
  ) throws(E) {
    try difference(at: .root, old, new, body)
  }

  private static func difference<E: Error>(
    at path: Path, _ old: Node, _ new: Node, _ body: (Path, Node, Node) throws(E) -> Void
  ) throws(E) {
    guard old.isBranch, new.isBranch, old.priority == new.priority else {
      if old != new { try body(path, old, new) }
      return
    }
    try forEachUnshared(old, new) { (key, a, b) throws(E) in
      try difference(at: path.appending(key), a, b, body)
      return true
    }
  }

  /// Whether two branches with equal priorities differ in a child.
  static func differs(_ a: Node, _ b: Node) -> Bool {
    var differs = false
    forEachUnshared(a, b) { _, x, y in
      differs = x != y
      return !differs
    }
    return differs
  }

  /// Calls `body` with each key of either branch and its nodes, in order, except for some where the
  /// two share storage, until it returns false.
  static func forEachUnshared<E: Error>(
    _ a: Node, _ b: Node, _ body: (Key, Node, Node) throws(E) -> Bool
  ) throws(E) {
    if a.isIdentical(to: b) { return }
    var left = a.children.makeIterator()
    var right = b.children.makeIterator()
    var x: (key: Key, node: Node)?
    var y: (key: Key, node: Node)?
    while true {
      if x == nil && y == nil {
        while left.settle(), right.settle(), Node.Children.Iterator.skipShared(&left, &right) {}
      }
      if x == nil { x = left.next() }
      if y == nil { y = right.next() }
      switch (x, y) {
      case (let p?, let q?) where p.key == q.key:
        if !p.node.isIdentical(to: q.node), try !body(p.key, p.node, q.node) { return }
        x = nil
        y = nil
      case (let p?, let q) where q.map({ p.key < $0.key }) ?? true:
        if try !body(p.key, p.node, .empty) { return }
        x = nil
      case (_, let q?):
        if try !body(q.key, .empty, q.node) { return }
        y = nil
      default: return
      }
    }
  }
}
