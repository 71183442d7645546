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
}
