import DendroTree

/// The children that a query with bounds or a limit shows: a range of ranks among all siblings, updated at
/// each change. Part of an `EventGenerator`.
struct Window {
  let parameters: QueryParameters
  /// That of the parameters.
  private let range: PackedPosition.Range
  /// The ranks of the shown children among all siblings.
  private(set) var ranks = 0..<0
  /// The positions of the first and the last child shown; nil if there is none.
  private var ends: ClosedRange<PackedPosition>?
  /// The shown children: made at the first call of `content(over:)`, then updated.
  private var content: ShownChildren?

  /// The children of a longer window are not kept in their order, since that takes memory and each change time.
  private static var rankedCountMax: Int { 1_000 }

  init(_ parameters: QueryParameters, over siblings: SiblingOrder) {
    self.parameters = parameters
    range = PackedPosition.Range(parameters)
    place(over: siblings)
  }

  private mutating func place(over siblings: SiblingOrder) {
    let count = siblings.count
    var low = 0
    var high = count
    if range.hasStart { low = siblings.count(while: range.isBeforeStart) }
    if range.hasEnd { high = siblings.count { !range.isAfterEnd($0) } }
    high = max(low, high)
    switch parameters.limit {
    case .first(let limit)?: high = min(high, low + limit)
    case .last(let limit)?: low = max(low, high - limit)
    case nil: break
    }
    ranks = low..<high
    ends = ranks.isEmpty ? nil : siblings.position(at: low)...siblings.position(at: high - 1)
  }

  // MARK: Changes beside the window

  private enum Side { case before, after }

  /// Updates the window after changes that all lie beside it: the same children are shown as before.
  ///
  /// - Returns: false if the window may show something else; then nothing was done.
  /// - Complexity: O(changes).
  mutating func slide(_ shifts: [Shift]) -> Bool {
    var offset = 0
    for shift in shifts {
      guard let old = side(of: shift.old), let new = side(of: shift.new) else { return false }
      offset += (new == .before ? 1 : 0) - (old == .before ? 1 : 0)
    }
    if offset != 0 { ranks = ranks.lowerBound + offset..<ranks.upperBound + offset }
    return true
  }

  /// On which side of the window a position lies; nil if it may be within. No position counts as one
  /// after the window.
  private func side(of position: PackedPosition?) -> Side? {
    guard let position else { return .after }
    let takesLast = if case .last? = parameters.limit { true } else { false }
    if let ends, ranks.count == parameters.limit?.count {
      // A full window has no room for what lies beyond the end at which it is cut off.
      if position < ends.lowerBound {
        return takesLast || range.isBeforeStart(position) ? .before : nil
      }
      if ends.upperBound < position {
        return !takesLast || range.isAfterEnd(position) ? .after : nil
      }
      return nil
    }
    if range.isBeforeStart(position) { return .before }
    return range.isAfterEnd(position) ? .after : nil
  }

  // MARK: Changes of the window

  /// Updates the window after a change that `siblings` already contains.
  ///
  /// A changed child was in the old window if its old position lies between the old ends, and is in the new
  /// one if its new position lies between the new ends. Unchanged children enter or leave the window only
  /// between an old end and the new one: they are found by their ranks, and are at most as many as the
  /// changed ones.
  ///
  /// - Complexity: O(changes · log n).
  mutating func advance(
    over siblings: SiblingOrder, _ changes: [ChangedChild], _ shifts: [Shift]
  ) -> ViewDifference {
    var difference = ViewDifference()
    let oldEnds = ends
    place(over: siblings)
    for (change, shift) in zip(changes, shifts) {
      difference.note(
        change, from: shift.old.flatMap { oldEnds?.contains($0) == true ? $0 : nil },
        to: shift.new.flatMap { ends?.contains($0) == true ? $0 : nil }, parameters.order)
    }
    // The ranks between the old ends after the change.
    var oldRanks = 0..<0
    if let old = oldEnds {
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
    update(difference, over: siblings)
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

  /// The child with this rank; nil if it is a changed one.
  private func unchanged(
    _ rank: Int, _ siblings: SiblingOrder, _ changes: [ChangedChild]
  ) -> ViewDifference.Entry? {
    let position = siblings.position(at: rank)
    let key = position.key
    var low = 0
    var high = changes.count
    while low < high {
      let middle = (low + high) / 2
      siblings.tally.add()
      if changes[middle].key < key { low = middle + 1 } else { high = middle }
    }
    if low < changes.count, changes[low].key == key { return nil }
    return ViewDifference.Entry(key: key, position: position, node: siblings.node.child(key))
  }

  // MARK: Content

  /// The shown children, and a node of them without a priority.
  ///
  /// - Complexity: O(shown · log shown) at the first call, then O(1).
  mutating func content(over siblings: SiblingOrder) -> ShownChildren {
    if let content { return content }
    var builder = NodeBuilder()
    var ranked: [OrderedChildren.Element]? = ranks.count <= Self.rankedCountMax ? [] : nil
    siblings.forEachChild(in: ranks) {
      builder.append($0, $1)
      ranked?.append(($0, $1))
      return true
    }
    let built = ShownChildren(node: builder.finish(), ranked: ranked)
    content = built
    return built
  }

  private mutating func update(_ difference: ViewDifference, over siblings: SiblingOrder) {
    guard var shown = content.take() else { return }
    for entry in difference.removed { shown.node.graft(.empty, at: Path(keys: [entry.key])) }
    for entries in [difference.added, difference.changed] {
      for entry in entries { shown.node.graft(entry.node, at: Path(keys: [entry.key])) }
    }
    shown.ranked = shown.ranked.flatMap { ranked(after: difference, from: $0, over: siblings) }
    content = shown
  }

  /// The shown children in their order after a change; nil if they are too many.
  ///
  /// - Complexity: O(shown + changes · log n).
  private func ranked(
    after difference: ViewDifference, from old: [OrderedChildren.Element],
    over siblings: SiblingOrder
  ) -> [OrderedChildren.Element]? {
    guard ranks.count <= Self.rankedCountMax else { return nil }
    var gone = Set(difference.removed.map(\.key))
    for entry in difference.changed { gone.insert(entry.key) }
    var stayed = old.lazy.filter { !gone.contains($0.key) }.makeIterator()
    let placed = (difference.added + difference.changed)
      .map { entry in (rank: siblings.count { $0 < entry.position }, entry: entry) }
      .sorted { $0.rank < $1.rank }
    var next = placed.makeIterator()
    var new: [OrderedChildren.Element] = []
    new.reserveCapacity(ranks.count)
    var upcoming = next.next()
    for rank in ranks {
      if let placed = upcoming, placed.rank == rank {
        new.append((placed.entry.key, placed.entry.node))
        upcoming = next.next()
      } else if let child = stayed.next() {
        new.append(child)
      }
    }
    return new
  }
}
