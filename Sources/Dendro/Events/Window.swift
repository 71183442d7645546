import DendroTree

/// The children that a query with bounds or a limit shows: a range of ranks among all, kept with each
/// change.
struct Window {
  let parameters: QueryParameters
  /// Of the children shown, among all.
  private(set) var ranks = 0..<0
  /// The positions of the first and the last child shown; nil if there is none.
  private var positions: ClosedRange<SortPosition>?
  /// What is shown, as a node; made when it is first asked for, and kept from then on.
  private var content: Node?

  init(_ parameters: QueryParameters, over siblings: SiblingOrder) {
    self.parameters = parameters
    place(over: siblings)
  }

  private mutating func place(over siblings: SiblingOrder) {
    let count = siblings.count
    var low = 0
    var high = count
    if parameters.start != nil { low = siblings.count(while: parameters.isBeforeStart) }
    if parameters.end != nil { high = siblings.count { !parameters.isAfterEnd($0) } }
    high = max(low, high)
    switch parameters.limit {
    case .first(let limit)?: high = min(high, low + limit)
    case .last(let limit)?: low = max(low, high - limit)
    case nil: break
    }
    ranks = low..<high
    positions =
      ranks.isEmpty ? nil : siblings.position(at: low)...siblings.position(at: high - 1)
  }

  /// Follows the siblings to their next state, in which they are already.
  ///
  /// Children that changed are in the old window if their old positions lie within its old ends, likewise in
  /// the new one. Others come in or go out only between old and new ends, and there are at most as many
  /// as changed: their ranks tell them.
  ///
  /// - Complexity: O(changes · log n).
  mutating func advance(
    over siblings: SiblingOrder, _ changes: [ChangedChild], _ shifts: [Shift]
  ) -> ViewDifference {
    var difference = ViewDifference()
    let oldPlaces = positions
    place(over: siblings)
    for (change, shift) in zip(changes, shifts) {
      difference.note(
        change, from: shift.old.flatMap { oldPlaces?.contains($0) == true ? $0 : nil },
        to: shift.new.flatMap { positions?.contains($0) == true ? $0 : nil }, parameters.order)
    }
    // The ranks that the old ends have now.
    var oldRanks = 0..<0
    if let old = oldPlaces {
      let low = siblings.count { $0 < old.lowerBound }
      oldRanks = low..<max(low, siblings.count { $0 <= old.upperBound })
    }
    Self.forEachRank(of: ranks, outside: oldRanks) { rank in
      if let entry = unchanged(rank, siblings, changes) { difference.added.append(entry) }
    }
    Self.forEachRank(of: oldRanks, outside: ranks) { rank in
      if let entry = unchanged(rank, siblings, changes) { difference.removed.append(entry) }
    }
    difference.sort(countingIn: siblings.tally)
    update(difference)
    return difference
  }

  private static func forEachRank(
    of ranks: Range<Int>, outside others: Range<Int>, _ body: (Int) -> Void
  ) {
    if others.isEmpty {
      ranks.forEach(body)
    } else {
      ranks.clamped(to: Int.min..<others.lowerBound).forEach(body)
      ranks.clamped(to: others.upperBound..<Int.max).forEach(body)
    }
  }

  /// The child with this rank, unless it is one that changed.
  private func unchanged(
    _ rank: Int, _ siblings: SiblingOrder, _ changes: [ChangedChild]
  ) -> ViewDifference.Entry? {
    let position = siblings.position(at: rank)
    var low = 0
    var high = changes.count
    while low < high {
      let middle = (low + high) / 2
      siblings.tally.add()
      if changes[middle].key < position.key { low = middle + 1 } else { high = middle }
    }
    if low < changes.count, changes[low].key == position.key { return nil }
    return ViewDifference.Entry(position: position, node: siblings.node.child(position.key))
  }

  // MARK: As a node

  /// What is shown, as a node: without a priority, and empty where nothing is shown.
  ///
  /// - Complexity: O(shown · log shown) at the first call, then O(1).
  mutating func content(over siblings: SiblingOrder) -> Node {
    if let content { return content }
    var builder = NodeBuilder()
    siblings.forEachChild(in: ranks) {
      builder.append($0, $1)
      return true
    }
    let built = builder.finish()
    content = built
    return built
  }

  private mutating func update(_ difference: ViewDifference) {
    guard var node = content.take() else { return }
    for entry in difference.removed { node.graft(.empty, at: Path(keys: [entry.position.key])) }
    for entries in [difference.added, difference.changed] {
      for entry in entries { node.graft(entry.node, at: Path(keys: [entry.position.key])) }
    }
    content = node
  }
}
