extension Node {
  /// The children in any order.
  ///
  /// - Complexity: nothing until it is iterated. Then O(1) a child by key, by priority where no child has
  ///   one, and where the order is known; otherwise they are sorted once at the beginning, O(n log n).
  ///
  /// - Parameters:
  ///   - order: the order of the iteration.
  ///   - ranked: all children in this order, if they are known.
  package func children(
    in order: SortOrder, ranked: [OrderedChildren.Element]? = nil
  ) -> OrderedChildren {
    OrderedChildren(node: self, order: order, ranked: ranked)
  }
}

/// The children of a node in one order, each with its key.
package struct OrderedChildren: Sequence, Sendable {
  package typealias Element = (key: Key, node: Node)

  let node: Node
  let order: SortOrder
  let ranked: [Element]?

  package func makeIterator() -> Iterator {
    if let ranked { return Iterator(ranked: ranked.makeIterator()) }
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
    /// Nil where the children had to be sorted, or are known in their order.
    fileprivate var tree: Node.Children.Iterator?
    fileprivate var sorted: IndexingIterator<[Selection.Entry]> = [].makeIterator()
    fileprivate var ranked: IndexingIterator<[OrderedChildren.Element]>?

    package mutating func next() -> OrderedChildren.Element? {
      if tree != nil { return tree?.next() }
      if ranked != nil { return ranked?.next() }
      return sorted.next().map { ($0.position.key, $0.node) }
    }
  }
}
