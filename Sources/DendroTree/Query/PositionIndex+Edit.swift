extension PositionIndex {
  /// Inserts a position that is not there.
  ///
  /// - Complexity: O(log n).
  package mutating func insert(_ position: PackedPosition) {
    Self.own(&root)
    count += 1
    allocatedByteCount += position.allocatedByteCount
    guard let (bound, page) = insert(position, into: root) else { return }
    root = Page(children: [root, page], bounds: [bound], totals: [count - page.total, page.total])
  }

  /// - Returns: the page that the given one was split into, to stand after it, and its bound.
  private func insert(
    _ position: PackedPosition, into page: Page
  ) -> (bound: PackedPosition, page: Page)? {
    if page.isLeaf {
      let index = place(of: position, in: page)
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
    allocatedByteCount -= position.allocatedByteCount
    remove(position, from: root)
    while root.children.count == 1 { root = root.children[0] }
  }

  private func remove(_ position: PackedPosition, from page: Page) {
    if page.isLeaf {
      let index = place(of: position, in: page)
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

  /// Removes a page without entries; joins one that is nearly empty with one beside it, if both fit
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
