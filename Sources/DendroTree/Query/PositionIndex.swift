/// Positions of children in ascending order, each once, found by value and by rank: a B-tree that counts.
///
/// A value: a copy is O(1) and shares its pages; a change copies the pages on its path that another copy
/// shares. Inner pages hold a bound for each child page but the first: no position of that child is less, and
/// every position of the child before is.
package struct PositionIndex: @unchecked Sendable {
  // Unchecked because of its pages: a value changes a page only if it holds the single reference to it;
  // pages that two values share are never changed.
  final class Page {
    /// Of a leaf page; empty in inner ones.
    var positions: ContiguousArray<PackedPosition> = []
    /// Of an inner page; empty in leaves.
    var children: ContiguousArray<Page> = []
    /// One for each child but the first.
    var bounds: ContiguousArray<PackedPosition> = []
    /// The positions in and below each child: here, so that no child is read to find a rank.
    var totals: ContiguousArray<Int> = []

    var isLeaf: Bool { children.isEmpty }
    /// The most entries; above it the page is split. Leaf pages are small, since a change moves half of one,
    /// and most changes find theirs in no cache.
    var limit: Int { isLeaf ? PositionIndex.leafLimit : PositionIndex.innerLimit }
    var entryCount: Int { isLeaf ? positions.count : children.count }
    /// The positions here and below.
    ///
    /// - Complexity: O(entries).
    var total: Int { isLeaf ? positions.count : totals.reduce(0, &+) }

    init(positions: ContiguousArray<PackedPosition>) { self.positions = positions }

    init(
      children: ContiguousArray<Page>, bounds: ContiguousArray<PackedPosition>,
      totals: ContiguousArray<Int>
    ) {
      self.children = children
      self.bounds = bounds
      self.totals = totals
    }

    func copy() -> Page {
      isLeaf
        ? Page(positions: positions) : Page(children: children, bounds: bounds, totals: totals)
    }
  }

  var root = Page(positions: [])
  package internal(set) var count = 0
  /// Of all positions: what long strings take beside the pages.
  package internal(set) var allocatedByteCount = 0
  /// What every comparison is counted in.
  let tally: ComparisonTally

  static var leafLimit: Int { 32 }
  static var innerLimit: Int { 64 }

  /// - Parameters:
  ///   - positions: ascending, each once.
  ///   - tally: what comparisons are counted in, those of this index and of its copies.
  /// - Complexity: O(n); it compares nothing.
  package init(
    ascending positions: [PackedPosition] = [], tally: ComparisonTally = ComparisonTally()
  ) {
    self.tally = tally
    count = positions.count
    allocatedByteCount = positions.reduce(0) { $0 + $1.allocatedByteCount }
    guard !positions.isEmpty else { return }
    // Three quarters full, so that the first insertions split nothing.
    var level: [(first: PackedPosition, page: Page, total: Int)] = []
    for range in Self.chunks(of: positions.count, Self.leafLimit * 3 / 4) {
      let page = Page(positions: ContiguousArray(positions[range]))
      level.append((positions[range.lowerBound], page, range.count))
    }
    while level.count > 1 {
      level = Self.chunks(of: level.count, Self.innerLimit * 3 / 4).map { range in
        let entries = level[range]
        let page = Page(
          children: ContiguousArray(entries.map(\.page)),
          bounds: ContiguousArray(entries.dropFirst().map(\.first)),
          totals: ContiguousArray(entries.map(\.total)))
        return (level[range.lowerBound].first, page, page.total)
      }
    }
    root = level[0].page
  }

  /// Ranges of about equal counts, none over `most`.
  private static func chunks(of count: Int, _ most: Int) -> [Range<Int>] {
    let chunkCount = (count + most - 1) / most
    return (0..<chunkCount).map { count * $0 / chunkCount..<count * ($0 + 1) / chunkCount }
  }

  // MARK: Finding

  /// How many positions, from the first one on, satisfy `precedes`; it must hold for none after the first
  /// for which it does not.
  ///
  /// - Complexity: O(log n) calls.
  package func count(while precedes: (PackedPosition) -> Bool) -> Int {
    var page = root
    var rank = 0
    while !page.isLeaf {
      let index = partitionPoint(page.bounds, precedes)
      for before in 0..<index { rank &+= page.totals[before] }
      page = page.children[index]
    }
    return rank + partitionPoint(page.positions, precedes)
  }

  /// How many positions are less than this one.
  ///
  /// - Complexity: O(log n).
  package func rank(of position: PackedPosition) -> Int {
    var page = root
    var rank = 0
    while !page.isLeaf {
      let index = partitionPoint(page.bounds) { $0 < position }
      for before in 0..<index { rank &+= page.totals[before] }
      page = page.children[index]
    }
    return rank + place(of: position, in: page)
  }

  /// Where a position of a leaf page is, or would be inserted.
  ///
  /// All heads are compared first, one after the other: the page is in no cache most of the time, and these
  /// reads do not wait for each other as those of a binary search do.
  @inline(__always)
  func place(of position: PackedPosition, in page: Page) -> Int {
    page.positions.withUnsafeBufferPointer { positions in
      let head = position.head
      var low = 0
      var high = 0
      for other in positions {
        low &+= other.head < head ? 1 : 0
        high &+= other.head <= head ? 1 : 0
      }
      var comparisonCount = 1
      while low < high {
        let middle = (low &+ high) &>> 1
        comparisonCount &+= 1
        if positions[middle] < position { low = middle &+ 1 } else { high = middle }
      }
      tally.add(comparisonCount)
      return low
    }
  }

  @inline(__always)
  func partitionPoint(
    _ positions: ContiguousArray<PackedPosition>, _ precedes: (PackedPosition) -> Bool
  ) -> Int {
    positions.withUnsafeBufferPointer { positions in
      var low = 0
      var high = positions.count
      var comparisonCount = 0
      while low < high {
        let middle = (low &+ high) &>> 1
        comparisonCount &+= 1
        if precedes(positions[middle]) { low = middle &+ 1 } else { high = middle }
      }
      tally.add(comparisonCount)
      return low
    }
  }

  /// The position with `rank` others before it.
  ///
  /// - Parameter rank: below `count`.
  /// - Complexity: O(log n); it compares nothing.
  package subscript(rank: Int) -> PackedPosition {
    precondition(
      rank >= 0 && rank < count, "there are \(count) positions: none has \(rank) before it")
    var page = root
    var rank = rank
    while !page.isLeaf {
      let index = Self.child(of: page, holding: &rank)
      page = page.children[index]
    }
    return page.positions[rank]
  }

  /// The child in which a rank is; the rank becomes that within the child.
  private static func child(of page: Page, holding rank: inout Int) -> Int {
    var index = 0
    while rank >= page.totals[index] {
      rank &-= page.totals[index]
      index &+= 1
    }
    return index
  }

  /// Calls `body` with the positions of a range of ranks, in order, until it returns false.
  ///
  /// - Complexity: O(log n + ranks).
  package func forEach(in ranks: Range<Int>, _ body: (PackedPosition) -> Bool) {
    precondition(
      ranks.lowerBound >= 0 && ranks.upperBound <= count,
      "there are \(count) positions: \(ranks) are not all there")
    guard !ranks.isEmpty else { return }
    _ = Self.forEach(in: ranks, of: root, body)
  }

  private static func forEach(
    in ranks: Range<Int>, of page: Page, _ body: (PackedPosition) -> Bool
  ) -> Bool {
    if page.isLeaf { return page.positions[ranks].allSatisfy(body) }
    var low = ranks.lowerBound
    var left = ranks.count
    var index = child(of: page, holding: &low)
    while left > 0 {
      let count = min(left, page.totals[index] - low)
      guard forEach(in: low..<low + count, of: page.children[index], body) else { return false }
      left -= count
      low = 0
      index += 1
    }
    return true
  }
}
