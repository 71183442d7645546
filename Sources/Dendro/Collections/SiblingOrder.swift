import DendroTree

/// The children of a node in one order, found by position and by rank.
///
/// By key the node itself is that order, and by priority too as long as no child has one. Otherwise it is an
/// index of their positions, made once in O(n log n) and then updated with each change in O(log n).
struct SiblingOrder {
  let order: SortOrder
  private(set) var node: Node
  private var index: PositionIndex?
  let tally: ComparisonTally

  init(_ order: SortOrder, of node: Node, tally: ComparisonTally) {
    self.order = order
    self.node = node
    self.tally = tally
    let isByKey = order == .key || (order == .priority && !node.hasChildPriorities)
    if !isByKey { buildIndex() }
  }

  private mutating func buildIndex() {
    var positions = node.packedPositions(in: order)
    var comparisonCount = 0
    positions.sort {
      comparisonCount += 1
      return $0 < $1
    }
    tally.add(comparisonCount)
    index = PositionIndex(ascending: positions, tally: tally)
  }

  var hasIndex: Bool { index != nil }

  /// What long strings take in the index.
  var allocatedByteCount: Int { index?.allocatedByteCount ?? 0 }

  /// Follows the node to its next state.
  ///
  /// - Parameter shifts: of all children that changed.
  mutating func advance(to node: Node, _ shifts: [Shift]) {
    self.node = node
    if index == nil {
      // Kept from the first priority on, even when the last one is removed: a rebuild would cost more.
      if order == .priority, node.hasChildPriorities { buildIndex() }
      return
    }
    if index?.count == 0 { return buildIndex() }
    for shift in shifts where shift.old != shift.new {
      if let old = shift.old { index?.remove(old) }
      if let new = shift.new { index?.insert(new) }
    }
  }

  var count: Int { node.childCount }

  /// How many children, from the first one on, satisfy `precedes`; it must hold for none after the first
  /// for which it does not.
  ///
  /// - Complexity: O(log n).
  func count(while precedes: (PackedPosition) -> Bool) -> Int {
    if let index { return index.count(while: precedes) }
    return node.childCount { key in
      tally.add()
      return precedes(PackedPosition(.none, key))
    }
  }

  /// The place of the child with `rank` others before it.
  ///
  /// - Complexity: O(log n).
  func position(at rank: Int) -> PackedPosition {
    index?[rank] ?? PackedPosition(.none, node.child(at: rank).key)
  }

  /// The key of the child before a place, among those from the rank `lowest` on; nil if it is the first.
  ///
  /// - Complexity: O(log n).
  func predecessor(of position: PackedPosition, from lowest: Int) -> Key? {
    let rank = count { $0 < position }
    return rank > lowest ? self.position(at: rank - 1).key : nil
  }

  /// Calls `body` with the children of a range of ranks, in order, until it returns false.
  func forEachChild(in ranks: Range<Int>, _ body: (Key, Node) -> Bool) {
    guard !ranks.isEmpty else { return }
    if let index {
      index.forEach(in: ranks) { position in
        let key = position.key
        return body(key, node.child(key))
      }
    } else {
      for (key, child) in node.children(from: node.child(at: ranks.lowerBound).key)
        .prefix(ranks.count)
      where !body(key, child) { return }
    }
  }
}
