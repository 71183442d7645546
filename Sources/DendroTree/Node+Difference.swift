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
    var x = left.next()
    var y = right.next()
    while true {
      if let p = x, let q = y, p.key == q.key {
        if !p.node.isIdentical(to: q.node), try !body(p.key, p.node, q.node) { return }
        x = left.next()
        y = right.next()
      } else if let p = x, y.map({ p.key < $0.key }) ?? true {
        if try !body(p.key, p.node, .empty) { return }
        x = left.next()
      } else if let q = y {
        if try !body(q.key, .empty, q.node) { return }
        y = right.next()
      } else {
        return
      }
    }
  }
}
