/// Which children of a location a query shows, and in which order.
///
/// Equal parameters mean the same query. A value; any thread.
package struct QueryParameters: Hashable, Sendable {
  /// Where the range begins or ends.
  package struct Bound: Hashable, Sendable {
    /// If children are sorted by key: `none`, and the key is the bound.
    package var value: SortValue
    /// Nil: all keys with the value are on the same side of the bound.
    package var key: Key?
    /// Whether what is exactly at the bound is left out.
    package var isExclusive: Bool

    package init(value: SortValue, key: Key?, isExclusive: Bool) {
      self.value = value
      self.key = key
      self.isExclusive = isExclusive
    }

    /// - Returns: negative, zero or positive, as the position is before, at or after the bound.
    fileprivate func compare(_ position: SortPosition) -> Int {
      if position.value != value { return position.value < value ? -1 : 1 }
      guard let key, position.key != key else { return 0 }
      return position.key < key ? -1 : 1
    }
  }

  /// How many children are shown at most: the first or the last ones of the range.
  package enum Limit: Hashable, Sendable {
    case first(Int)
    case last(Int)
  }

  package var order = SortOrder.priority
  package var start: Bound?
  package var end: Bound?
  package var limit: Limit?

  /// All children, by priority and then by key.
  package init() {}

  /// Whether the whole node is shown: a leaf too, and its priority. Bounds and limits show children
  /// only, and no priority of the node.
  package var showsAll: Bool { start == nil && end == nil && limit == nil }

  package func isBeforeStart(_ position: SortPosition) -> Bool {
    guard let start else { return false }
    let side = start.compare(position)
    return side < 0 || (side == 0 && start.isExclusive)
  }

  package func isAfterEnd(_ position: SortPosition) -> Bool {
    guard let end else { return false }
    let side = end.compare(position)
    return side > 0 || (side == 0 && end.isExclusive)
  }

  /// Whether a child at this place is in the range; limits are not looked at.
  package func isInRange(_ position: SortPosition) -> Bool {
    !isBeforeStart(position) && !isAfterEnd(position)
  }
}
