extension Node {
  /// The children in any order.
  ///
  /// - Complexity: nothing until it is iterated. Then O(1) a child by key, by priority if no child has
  ///   one, and if the order is known; otherwise they are sorted once at the beginning, O(n log n).
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
    return Iterator(ranked: sorted().makeIterator())
  }

  /// The children are sorted by places, which are moved without counting a reference.
  private func sorted() -> [Element] {
    let positions = node.packedPositions(in: order)
    var places = positions.indices.map { (head: positions[$0].head, index: $0) }
    places.sort { a, b in
      a.head != b.head ? a.head < b.head : positions[a.index] < positions[b.index]
    }
    var children: [Element] = []
    children.reserveCapacity(places.count)
    node.forEachChild { children.append(($0, $1)) }
    return places.map { children[$0.index] }
  }

  package var underestimatedCount: Int { node.childCount }

  package struct Iterator: IteratorProtocol {
    /// Nil if the children had to be sorted, or are known in their order.
    fileprivate var tree: Node.Children.Iterator?
    fileprivate var ranked: IndexingIterator<[Element]>?

    package mutating func next() -> Element? {
      tree != nil ? tree?.next() : ranked?.next()
    }
  }
}
