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

  private(set) var root = Page(positions: [])
  package private(set) var count = 0
  /// What every comparison is counted in.
  private let tally: ComparisonTally

  private static var leafLimit: Int { 32 }
  private static var innerLimit: Int { 64 }

  /// - Parameters:
  ///   - positions: ascending, each once.
  ///   - tally: what comparisons are counted in, those of this index and of its copies.
  /// - Complexity: O(n); it compares nothing.
  package init(
    ascending positions: [PackedPosition] = [], tally: ComparisonTally = ComparisonTally()
  ) {
    self.tally = tally
    count = positions.count
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
  package func rank(of position: PackedPosition) -> Int { count { $0 < position } }

  @inline(__always)
  private func partitionPoint(
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

  // MARK: Changing

  /// Inserts a position that is not there.
  ///
  /// - Complexity: O(log n).
  package mutating func insert(_ position: PackedPosition) {
    Self.own(&root)
    count += 1
    guard let (bound, page) = insert(position, into: root) else { return }
    root = Page(children: [root, page], bounds: [bound], totals: [count - page.total, page.total])
  }

  /// - Returns: the page that the given one was split into, to stand after it, and its bound.
  private func insert(
    _ position: PackedPosition, into page: Page
  ) -> (bound: PackedPosition, page: Page)? {
    if page.isLeaf {
      let index = partitionPoint(page.positions) { $0 < position }
      page.positions.insert(position, at: index)
    } else {
      let index = partitionPoint(page.bounds) { !(position < $0) }
      Self.own(&page.children[index])
      page.totals[index] &+= 1
      if let split = insert(position, into: page.children[index]) {
        let total = split.page.total
        page.totals[index] -= total
        page.totals.insert(total, at: index + 1)
        page.children.insert(split.page, at: index + 1)
        page.bounds.insert(split.bound, at: index)
      }
    }
    return page.entryCount > page.limit ? Self.split(page) : nil
  }

  private static func split(_ page: Page) -> (bound: PackedPosition, page: Page) {
    let middle = page.entryCount / 2
    if page.isLeaf {
      let new = Page(positions: ContiguousArray(page.positions[middle...]))
      page.positions.removeSubrange(middle...)
      return (new.positions[0], new)
    }
    let bound = page.bounds[middle - 1]
    let new = Page(
      children: ContiguousArray(page.children[middle...]),
      bounds: ContiguousArray(page.bounds[middle...]),
      totals: ContiguousArray(page.totals[middle...]))
    page.children.removeSubrange(middle...)
    page.bounds.removeSubrange((middle - 1)...)
    page.totals.removeSubrange(middle...)
    return (bound, new)
  }

  /// Removes a position that is there.
  ///
  /// - Complexity: O(log n).
  package mutating func remove(_ position: PackedPosition) {
    Self.own(&root)
    count -= 1
    remove(position, from: root)
    while root.children.count == 1 { root = root.children[0] }
  }

  private func remove(_ position: PackedPosition, from page: Page) {
    if page.isLeaf {
      let index = partitionPoint(page.positions) { $0 < position }
      precondition(
        index < page.positions.count && page.positions[index] == position,
        "what is removed from an index is in it")
      page.positions.remove(at: index)
    } else {
      let index = partitionPoint(page.bounds) { !(position < $0) }
      Self.own(&page.children[index])
      page.totals[index] &-= 1
      remove(position, from: page.children[index])
      if page.children[index].entryCount < page.children[index].limit / 4 {
        Self.merge(page, index)
      }
    }
  }

  /// Removes a page without entries; joins one that is nearly empty with one beside it, where both fit
  /// into one. Beside pages that are nearly full it may stay.
  private static func merge(_ page: Page, _ index: Int) {
    let count = page.children[index].entryCount
    // Removed before pages are joined: an inner page without children looks like a leaf.
    if count == 0 {
      page.children.remove(at: index)
      page.totals.remove(at: index)
      if !page.bounds.isEmpty { page.bounds.remove(at: max(index - 1, 0)) }
      return
    }
    for left in [index - 1, index] where left >= 0 && left + 1 < page.children.count {
      let other = page.children[left == index ? index + 1 : left]
      guard count + other.entryCount <= other.limit * 3 / 4 else { continue }
      own(&page.children[left])
      let target = page.children[left]
      let source = page.children[left + 1]
      if target.isLeaf {
        target.positions += source.positions
      } else {
        target.children += source.children
        target.bounds.append(page.bounds[left])
        target.bounds += source.bounds
        target.totals += source.totals
      }
      page.totals[left] += page.totals[left + 1]
      page.children.remove(at: left + 1)
      page.totals.remove(at: left + 1)
      page.bounds.remove(at: left)
      return
    }
  }

  private static func own(_ page: inout Page) {
    if !isKnownUniquelyReferenced(&page) { page = page.copy() }
  }
}
