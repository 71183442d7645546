extension Node: Equatable {
  /// Whether both nodes have the same data, priorities included. Numbers compare by value.
  ///
  /// - Complexity: O(nodes that the two trees do not share).
  package static func == (a: Node, b: Node) -> Bool {
    if a.priority != b.priority { return false }
    if a.isBranch || b.isBranch {
      guard a.isBranch, b.isBranch, a.childCount == b.childCount else { return false }
      return !Node.differs(a, b)
    }
    return a.scalar == b.scalar
  }
}

extension Node {
  /// The number of levels of keys below the node: 0 for a leaf or the empty node.
  ///
  /// - Complexity: O(nodes).
  package func height() -> Int {
    if !isBranch { return 0 }
    if withStoredLeaves({ _ in }) { return 1 }
    var height = 0
    forEachChild { _, child in height = max(height, 1 + child.height()) }
    return height
  }

  /// The number of leaves.
  ///
  /// - Complexity: O(nodes).
  package func leafCount() -> Int {
    guard let page = branch else { return isEmpty ? 0 : 1 }
    return withExtendedLifetime(page) { Node.leafCount(of: page.access) }
  }

  private static func leafCount(of page: PageAccess) -> Int {
    if !page.hasReferences { return page.count }
    var count = 0
    for index in 0..<page.count {
      let isLeaf = page.kind != .inner && !page.refers(index)
      count += isLeaf ? 1 : leafCount(of: PageAccess(page.reference(index)))
    }
    return count
  }
}
