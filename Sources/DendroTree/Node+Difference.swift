extension Node {
  /// Calls `body` with each of the smallest subtrees in which two trees differ, in the order of paths.
  ///
  /// Such a subtree is a leaf, a branch that only one of the trees has, or a branch whose priority
  /// differs, which is reported as a whole. Shared pages are skipped without being read.
  ///
  /// - Complexity: O(nodes that the two trees do not share).
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

  /// Calls `body` with each key of either branch and the two nodes at it, in the order of keys, until it
  /// returns false. Keys at which the branches share storage may be skipped.
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
        while left.moveToEntry(), right.moveToEntry(),
          Node.Children.Iterator.skipShared(&left, &right)
        {}
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
