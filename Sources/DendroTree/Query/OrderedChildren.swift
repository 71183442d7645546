extension Node {
  /// The children in any order.
  ///
  /// - Complexity: nothing until it is gone over. Then O(1) a child by key, and by priority where no
  ///   child has one; otherwise they are sorted once at the beginning, O(n log n).
  package func children(in order: SortOrder) -> OrderedChildren {
    OrderedChildren(node: self, order: order)
  }
}

/// The children of a node in one order, each with its key.
package struct OrderedChildren: Sequence, Sendable {
  let node: Node
  let order: SortOrder

  package func makeIterator() -> Iterator {
    if order == .key || (order == .priority && !node.hasChildPriorities) {
      return Iterator(tree: node.children.makeIterator())
    }
    var entries: [Selection.Entry] = []
    entries.reserveCapacity(node.childCount)
    node.forEachChild { key, child in
      entries.append(Selection.Entry(position: order.position(of: key, child), node: child))
    }
    entries.sort { $0.position < $1.position }
    return Iterator(tree: nil, sorted: entries.makeIterator())
  }

  package var underestimatedCount: Int { node.childCount }

  package struct Iterator: IteratorProtocol {
    /// Nil where the children had to be sorted.
    fileprivate var tree: Node.Children.Iterator?
    fileprivate var sorted: IndexingIterator<[Selection.Entry]> = [].makeIterator()

    package mutating func next() -> (key: Key, node: Node)? {
      if tree != nil { return tree?.next() }
      return sorted.next().map { ($0.position.key, $0.node) }
    }
  }
}
