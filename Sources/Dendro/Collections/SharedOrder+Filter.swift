import DendroTree

extension SharedOrder {
  /// What a query in this order shows of a node, as `Node.filtered(by:)`.
  ///
  /// - Complexity: O(children that changed since the last call · log n + shown · log shown).
  func filter(_ node: Node, by parameters: QueryParameters) -> Node {
    let siblings = siblings(of: node)
    var window = Window(parameters, over: siblings)
    // To look at every child is cheaper than to look up most of them.
    guard window.ranks.count <= node.childCount / 4 else { return node.filtered(by: parameters) }
    return window.content(over: siblings)
  }
}
