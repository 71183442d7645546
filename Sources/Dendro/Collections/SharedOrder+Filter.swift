import DendroTree

extension SharedOrder {
  /// What a query in this order shows of a node, as `Node.filtered(by:)`, and the shown children in this order.
  ///
  /// - Complexity: O(children that changed since the last call · log n + shown · log shown).
  func filter(
    _ node: Node, by parameters: QueryParameters
  ) -> (node: Node, ranked: [OrderedChildren.Element]?) {
    let siblings = siblings(of: node)
    let window = Window(parameters, over: siblings)
    // To look at every child is cheaper than to look up most of them.
    guard window.ranks.count <= node.childCount / 4 else {
      return (node.filtered(by: parameters), nil)
    }
    var ranked: [OrderedChildren.Element] = []
    ranked.reserveCapacity(window.ranks.count)
    var builder = NodeBuilder()
    siblings.forEachChild(in: window.ranks) { key, child in
      ranked.append((key, child))
      builder.append(key, child)
      return true
    }
    return (builder.finish(), ranked)
  }
}
