extension Node {
  /// The number of children whose keys satisfy `precedes`. Their keys must come before all keys that do
  /// not.
  ///
  /// - Complexity: O(log children) calls, plus adding up the totals of the pages on the way.
  package func childCount(while precedes: (Key) -> Bool) -> Int {
    guard let page = branch else { return 0 }
    return withExtendedLifetime(page) {
      var page = page.access
      var count = 0
      while page.kind == .inner {
        // Take the last page whose least key precedes. The key of the first page is not a bound.
        let index = page.partitionPoint(in: 1..<page.count, precedes) - 1
        for before in 0..<index { count += PageAccess(unresolved: page.reference(before)).total }
        page = PageAccess(page.reference(index))
      }
      return count + page.partitionPoint(in: 0..<page.count, precedes)
    }
  }

  /// The child at a rank: the number of children before it in the order of keys.
  ///
  /// - Parameter rank: at least 0 and less than `childCount`.
  /// - Complexity: O(log children), plus adding up the totals of the pages on the way.
  package func child(at rank: Int) -> (key: Key, node: Node) {
    guard let page = branch, rank >= 0, rank < childCount else {
      preconditionFailure("rank \(rank) is out of range: there are \(childCount) children")
    }
    return withExtendedLifetime(page) {
      var page = page.access
      var rank = rank
      while page.kind == .inner {
        var index = 0
        while true {
          let total = PageAccess(unresolved: page.reference(index)).total
          if rank < total { break }
          rank -= total
          index += 1
        }
        page = PageAccess(page.reference(index))
      }
      // A page that cannot be read has fewer children than the pages above say.
      guard rank < page.count else { return (.lost, .empty) }
      return (page.keyValue(rank), page.node(rank))
    }
  }

  /// Calls `body` with each key at which the children differ and with both children, in the order of
  /// keys. The priorities of `old` and `new` themselves are not compared.
  ///
  /// - Complexity: O(nodes that the two trees do not share).
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
  /// The index of the first entry in the range whose key does not precede; the end of the range if there
  /// is none.
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
