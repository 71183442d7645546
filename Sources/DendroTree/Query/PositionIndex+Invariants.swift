extension PositionIndex {
  /// What is wrong with the index; nil if nothing is. For tests.
  ///
  /// - Complexity: O(n).
  package var problem: String? {
    var last: PackedPosition?
    var depths: Set<Int> = []
    func check(_ page: Page, depth: Int) -> String? {
      if page.entryCount > page.limit { return "a page is too full" }
      guard !page.isLeaf else {
        depths.insert(depth)
        if page.positions.isEmpty && depth > 0 { return "a page is empty" }
        for position in page.positions {
          if let last, !(last < position) { return "positions do not ascend" }
          last = position
        }
        return nil
      }
      if page.children.count < 2 && depth == 0 { return "the root has one page" }
      if page.bounds.count != page.children.count - 1 { return "a bound is missing" }
      if page.totals != ContiguousArray(page.children.map(\.total)) {
        return "a page counts wrongly"
      }
      for (index, child) in page.children.enumerated() {
        if index > 0, let last, !(last < page.bounds[index - 1]) { return "a bound is too low" }
        if let problem = check(child, depth: depth + 1) { return problem }
        if index > 0, Self.first(of: child) < page.bounds[index - 1] {
          return "a bound is too high"
        }
      }
      return nil
    }
    if let problem = check(root, depth: 0) { return problem }
    if root.total != count { return "the index counts wrongly" }
    return depths.count == 1 ? nil : "leaves differ in depth"
  }

  private static func first(of page: Page) -> PackedPosition {
    var page = page
    while !page.isLeaf { page = page.children[0] }
    return page.positions[0]
  }
}
