import DendroTree

// What a query shows of what is known.

extension ListenedView {
  /// Shows a child, if the query has it in its range.
  mutating func show(_ child: Node, at key: Key) {
    visible.node.put(parameters.admits(child, at: key) ? child : .empty, at: key)
  }

  /// Shows a node, of a query the children in its range.
  mutating func show(_ node: Node) {
    visible.node = node.filtered(by: parameters.range)
    wasReplaced = true
  }

  /// Brings what is known in line with a limit.
  ///
  /// Where the server's data are not known, a child that has left the window is known no more, and no other one takes the
  /// place of one that leaves. Otherwise it may be one of which only a part is known, by a write.
  mutating func settle(from before: Node, _ writes: WriteLayer, _ whole: Node?) {
    guard let limit = parameters.limit else { return }
    if whole == nil, !server.isComplete, writes.whole == nil {
      if visible.node.childCount > limit.count {
        visible.node = visible.node.filtered(by: parameters)
      }
      return
    }
    if wasReplaced || writes.parts.isEmpty { return }
    let window = before.filtered(by: parameters)
    guard window.childCount == limit.count else { return }
    let changed = window.children.filter { visible.node.child($0.key) != $0.node }
    guard !changed.isEmpty, let next = nextPart(after: window, writes) else { return }
    let shown = visible.node.filtered(by: parameters)
    let isNearest = shown.children.allSatisfy {
      window.has($0.key) || parameters.isNearer(next.position, parameters.position($0))
    }
    let leaves = changed.contains {
      let child = visible.node.child($0.key)
      return child.isEmpty
        || parameters.isNearer(next.position, parameters.position(($0.key, child)))
    }
    if isNearest, leaves { visible.node.put(next.node, at: next.position.key) }
  }

  /// The nearest child behind a window of which only a part is known.
  private func nextPart(
    after window: Node, _ writes: WriteLayer
  ) -> (position: SortPosition, node: Node)? {
    let positions = window.children.map { parameters.position($0) }
    guard let boundary = positions.max(by: { parameters.isNearer($0, $1) }) else { return nil }
    var nearest: (position: SortPosition, node: Node)?
    for key in writes.parts where !visible.node.has(key) && !window.has(key) {
      let node = writes.below(key).applied(to: .empty)
      let position = parameters.position((key, node))
      guard parameters.admits(node, at: key), parameters.isNearer(boundary, position) else {
        continue
      }
      if let nearest, !parameters.isNearer(position, nearest.position) { continue }
      nearest = (position, node)
    }
    return nearest
  }
}

extension QueryParameters {
  /// The same without a limit.
  fileprivate var range: QueryParameters {
    var range = self
    range.limit = nil
    return range
  }

  fileprivate func position(_ child: (key: Key, node: Node)) -> SortPosition {
    order.position(of: child.key, child.node)
  }

  /// Whether a child is there, and in the range.
  fileprivate func admits(_ child: Node, at key: Key) -> Bool {
    !child.isEmpty && (showsAll || isInRange(order.position(of: key, child)))
  }

  /// Whether a position is nearer than another one to the end from which a limit counts.
  fileprivate func isNearer(_ position: SortPosition, _ other: SortPosition) -> Bool {
    if case .last? = limit { other < position } else { position < other }
  }

  /// Puts a child into what the query shows of a node, or takes it out.
  ///
  /// - Complexity: O(log shown), or O(shown) if as many are shown as may be.
  func put(_ child: Node, at key: Key, in shown: inout Node) {
    guard admits(child, at: key) else { return shown.put(.empty, at: key) }
    guard let limit, shown.childCount >= limit.count, !shown.has(key) else {
      return shown.put(child, at: key)
    }
    // A child more than there may be: the one at the far end leaves, or this one does not come.
    let position = position((key, child))
    let farthest = shown.children.map { self.position($0) }.max { isNearer($0, $1) }
    guard let farthest, isNearer(position, farthest) else { return }
    shown.put(.empty, at: farthest.key)
    shown.put(child, at: key)
  }
}
