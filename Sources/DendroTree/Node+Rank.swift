extension Node {
  /// How many children, from the first key upwards, satisfy `precedes`; it must hold for none after the
  /// first for which it does not.
  ///
  /// - Complexity: O(log children) calls; the sizes of the pages on the way are added up.
  package func childCount(while precedes: (Key) -> Bool) -> Int {
    guard let page = branch else { return 0 }
    return withExtendedLifetime(page) {
      var page = page.access
      var count = 0
      while page.kind == .inner {
        // The last page whose first key precedes; the key of the first page bounds nothing.
        let index = page.partitionPoint(in: 1..<page.count, precedes) - 1
        for before in 0..<index { count += PageAccess(page.reference(before)).total }
        page = PageAccess(page.reference(index))
      }
      return count + page.partitionPoint(in: 0..<page.count, precedes)
    }
  }

  /// The child with `rank` children before it, in the order of keys.
  ///
  /// - Parameter rank: below `childCount`.
  /// - Complexity: O(log children); the sizes of the pages on the way are added up.
  package func child(at rank: Int) -> (key: Key, node: Node) {
    guard let page = branch, rank >= 0, rank < childCount else {
      preconditionFailure("there are \(childCount) children: none has \(rank) before it")
    }
    return withExtendedLifetime(page) {
      var page = page.access
      var rank = rank
      while page.kind == .inner {
        var index = 0
        while true {
          let total = PageAccess(page.reference(index)).total
          if rank < total { break }
          rank -= total
          index += 1
        }
        page = PageAccess(page.reference(index))
      }
      return (page.keyValue(rank), page.node(rank))
    }
  }

  /// Calls `body` with each key at which the children differ and with both nodes, in the order of keys.
  /// Whether the nodes themselves have other priorities plays no part.
  ///
  /// - Complexity: O(nodes that the two do not share).
  package static func changedChildren(
    from old: Node, to new: Node, _ body: (Key, _ old: Node, _ new: Node) -> Void
  ) {
    forEachUnshared(old, new) { key, before, after in
      if before != after { body(key, before, after) }
      return true
    }
  }
}

extension PageAccess {
  /// The first entry of the range whose key does not precede; its end if there is none.
  fileprivate func partitionPoint(in range: Range<Int>, _ precedes: (Key) -> Bool) -> Int {
    var low = range.lowerBound
    var high = range.upperBound
    while low < high {
      let middle = (low + high) / 2
      if precedes(keyValue(middle)) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
