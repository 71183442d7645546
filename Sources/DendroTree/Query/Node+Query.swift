extension Node {
  /// What a query shows of this node: the children in its range, at most as many as its limit.
  ///
  /// The node itself if there is no query, or its parameters show all; otherwise without its own priority, and nothing
  /// if no child is left or there are none.
  ///
  /// - Complexity: O(log n + shown) by key, and by priority if no child has one; otherwise O(n), with
  ///   a limit O(n log limit) in time and O(limit) in memory.
  package func filtered(by parameters: QueryParameters?) -> Node {
    guard let parameters, !parameters.showsAll else { return self }
    guard isBranch else { return .empty }
    let limit = parameters.limit?.count ?? .max
    if showsAllChildren(parameters) { return settingPriority(nil) }
    if isInKeyOrder(parameters.order) { return filteredByKey(parameters, limit) }
    return limit < childCount ? selected(parameters, limit) : scanned(parameters)
  }

  /// Whether `filtered(by:)` looks at every child, since the order that the query asks for is not that of
  /// keys.
  package func isScanned(by parameters: QueryParameters) -> Bool {
    isBranch && !parameters.showsAll && !showsAllChildren(parameters)
      && !isInKeyOrder(parameters.order)
  }

  private func showsAllChildren(_ parameters: QueryParameters) -> Bool {
    let limit = parameters.limit?.count ?? .max
    return limit >= childCount && parameters.start == nil && parameters.end == nil
  }

  /// Whether the children have this order by their keys alone.
  private func isInKeyOrder(_ order: SortOrder) -> Bool {
    order == .key || (order == .priority && !hasChildPriorities)
  }

  /// How many children `filtered(by:)` looks at, at most.
  package func filteringCost(_ parameters: QueryParameters) -> Int {
    if parameters.showsAll { return 0 }
    if isInKeyOrder(parameters.order), let limit = parameters.limit {
      return min(limit.count, childCount)
    }
    return childCount
  }

  // MARK: By key

  /// If the order of positions is that of the keys: moves to the beginning of the range.
  private func filteredByKey(_ parameters: QueryParameters, _ limit: Int) -> Node {
    var first = parameters.start?.keyOfNone
    if case .last? = parameters.limit {
      // Counted from the end, then read upwards, which leaves full pages.
      guard let key = lastKey(parameters, limit) else { return .empty }
      first = key
    }
    var builder = NodeBuilder()
    var count = 0
    for (key, child) in first.map(children(from:)) ?? children {
      let position = SortPosition(value: .none, key: key)
      if parameters.isBeforeStart(position) {
        // Only the one at an exclusive bound, or all of them if the start is above them.
        guard parameters.start?.value == SortValue.none else { break }
        continue
      }
      if parameters.isAfterEnd(position) || count == limit { break }
      builder.append(key, child)
      count += 1
    }
    return count == childCount ? settingPriority(nil) : builder.finish()
  }

  /// The first of the last `limit` keys in the range; nil if there is none.
  private func lastKey(_ parameters: QueryParameters, _ limit: Int) -> Key? {
    var last: Key?
    var count = 0
    for (key, _) in parameters.end?.keyOfNone.map(reversedChildren(from:)) ?? reversedChildren {
      let position = SortPosition(value: .none, key: key)
      if parameters.isAfterEnd(position) {
        guard parameters.end?.value == SortValue.none else { break }
        continue
      }
      if parameters.isBeforeStart(position) || count == limit { break }
      last = key
      count += 1
    }
    return last
  }

  // MARK: By looking at every child

  /// All children in the range.
  private func scanned(_ parameters: QueryParameters) -> Node {
    var builder: NodeBuilder?
    var count = 0
    forEachChild { key, child in
      if parameters.isInRange(parameters.order.position(of: key, child)) {
        builder?.append(key, child)
        count += 1
      } else if builder == nil {
        // Up to here nothing had to be built: if all are in the range, nothing ever is.
        var copy = NodeBuilder()
        for (key, child) in children.prefix(count) { copy.append(key, child) }
        builder = copy
      }
    }
    return builder.map { $0.finish() } ?? settingPriority(nil)
  }

  /// The first or last `limit` children in the range.
  private func selected(_ parameters: QueryParameters, _ limit: Int) -> Node {
    let takesLast = if case .last? = parameters.limit { true } else { false }
    var selection = Selection(limit: limit, takesLast: takesLast)
    // Keys go the way in which, of equal values, the first ones met are those to take: then nothing
    // that comes later can do better than a selection of the extreme value.
    let extreme = takesLast ? parameters.end?.value ?? .branch : parameters.start?.value ?? .none
    for (key, child) in takesLast ? reversedChildren : children {
      let position = parameters.order.position(of: key, child)
      guard parameters.isInRange(position) else { continue }
      selection.offer(position, child)
      if selection.isFull, selection.worstValue == extreme { break }
    }
    var builder = NodeBuilder()
    for entry in selection.takeByKey() { builder.append(entry.position.key, entry.node) }
    return builder.finish()
  }
}

extension QueryParameters.Bound {
  /// The key of a bound among children that are sorted by nothing else.
  fileprivate var keyOfNone: Key? { value == .none ? key : nil }
}

extension QueryParameters.Limit {
  package var count: Int {
    switch self {
    case .first(let count), .last(let count): count
    }
  }
}
