import Synchronization

/// Elements in ascending order, each once, found by value and by rank: a B-tree that counts.
///
/// A value: a copy is O(1) and shares its pages; a change copies the pages on its path that another copy
/// shares. Inner pages hold a bound for each child page but the first: no element of that child is less, and
/// every element of the child before is.
package struct OrderedIndex<Element: Comparable & Sendable>: @unchecked Sendable {
  // Unchecked because of its pages: a value changes a page only if it holds the single reference to it;
  // pages that two values share are never changed.
  private final class Page {
    /// Of a leaf page; empty in inner ones.
    var elements: [Element] = []
    /// Of an inner page; empty in leaves.
    var children: [Page] = []
    /// One for each child but the first.
    var bounds: [Element] = []
    /// The elements here and below.
    var total = 0

    var isLeaf: Bool { children.isEmpty }
    var entryCount: Int { isLeaf ? elements.count : children.count }

    init(elements: [Element]) {
      self.elements = elements
      total = elements.count
    }

    init(children: [Page], bounds: [Element]) {
      self.children = children
      self.bounds = bounds
      total = children.reduce(0) { $0 + $1.total }
    }

    func copy() -> Page {
      isLeaf ? Page(elements: elements) : Page(children: children, bounds: bounds)
    }
  }

  private var root = Page(elements: [])
  /// What every comparison is counted in.
  private let tally: ComparisonTally

  /// Entries of a page at most; above it the page is split.
  private static var pageLimit: Int { 64 }

  /// - Parameter tally: what comparisons are counted in, those of this index and of its copies.
  package init(tally: ComparisonTally = ComparisonTally()) { self.tally = tally }

  /// - Parameters:
  ///   - elements: ascending, each once.
  ///   - tally: what comparisons are counted in, those of this index and of its copies.
  /// - Complexity: O(n); it compares nothing.
  package init(ascending elements: [Element], tally: ComparisonTally = ComparisonTally()) {
    self.tally = tally
    guard !elements.isEmpty else { return }
    // Three quarters full, so that the first insertions split nothing.
    let fill = Self.pageLimit * 3 / 4
    var level: [(first: Element, page: Page)] = []
    for range in Self.chunks(of: elements.count, fill) {
      level.append((elements[range.lowerBound], Page(elements: Array(elements[range]))))
    }
    while level.count > 1 {
      level = Self.chunks(of: level.count, fill).map { range in
        let entries = level[range]
        let page = Page(
          children: entries.map(\.page), bounds: entries.dropFirst().map(\.first))
        return (level[range.lowerBound].first, page)
      }
    }
    root = level[0].page
  }

  /// Ranges of about equal counts, none over `most`.
  private static func chunks(of count: Int, _ most: Int) -> [Range<Int>] {
    let chunkCount = (count + most - 1) / most
    return (0..<chunkCount).map { count * $0 / chunkCount..<count * ($0 + 1) / chunkCount }
  }

  package var count: Int { root.total }

  // MARK: Finding

  /// How many elements, from the first one on, satisfy `precedes`; it must hold for none after the first
  /// for which it does not.
  ///
  /// - Complexity: O(log n) calls.
  package func count(while precedes: (Element) -> Bool) -> Int {
    var page = root
    var rank = 0
    while !page.isLeaf {
      let index = partitionPoint(page.bounds, precedes)
      for before in 0..<index { rank += page.children[before].total }
      page = page.children[index]
    }
    return rank + partitionPoint(page.elements, precedes)
  }

  private func partitionPoint(_ elements: [Element], _ precedes: (Element) -> Bool) -> Int {
    var low = 0
    var high = elements.count
    while low < high {
      let middle = (low + high) / 2
      tally.add()
      if precedes(elements[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The element with `rank` elements before it.
  ///
  /// - Parameter rank: below `count`.
  /// - Complexity: O(log n); it compares nothing.
  package subscript(rank: Int) -> Element {
    precondition(
      rank >= 0 && rank < count, "there are \(count) elements: none has \(rank) before it")
    var page = root
    var rank = rank
    while !page.isLeaf {
      var index = 0
      while rank >= page.children[index].total {
        rank -= page.children[index].total
        index += 1
      }
      page = page.children[index]
    }
    return page.elements[rank]
  }

  // MARK: Changing

  /// Inserts an element that is not there.
  ///
  /// - Complexity: O(log n).
  package mutating func insert(_ element: Element) {
    if !isKnownUniquelyReferenced(&root) { root = root.copy() }
    guard let (bound, page) = insert(element, into: root) else { return }
    root = Page(children: [root, page], bounds: [bound])
  }

  /// - Returns: the page that the given one was split into, to stand after it, and its bound.
  private func insert(_ element: Element, into page: Page) -> (bound: Element, page: Page)? {
    page.total += 1
    if page.isLeaf {
      let index = partitionPoint(page.elements) { $0 < element }
      page.elements.insert(element, at: index)
    } else {
      let index = partitionPoint(page.bounds) { $0 < element || $0 == element }
      own(&page.children[index])
      if let split = insert(element, into: page.children[index]) {
        page.children.insert(split.page, at: index + 1)
        page.bounds.insert(split.bound, at: index)
      }
    }
    return page.entryCount > Self.pageLimit ? split(page) : nil
  }

  private func split(_ page: Page) -> (bound: Element, page: Page) {
    let middle = page.entryCount / 2
    let bound: Element
    let new: Page
    if page.isLeaf {
      bound = page.elements[middle]
      new = Page(elements: Array(page.elements[middle...]))
      page.elements.removeSubrange(middle...)
    } else {
      bound = page.bounds[middle - 1]
      new = Page(
        children: Array(page.children[middle...]), bounds: Array(page.bounds[middle...]))
      page.children.removeSubrange(middle...)
      page.bounds.removeSubrange((middle - 1)...)
    }
    page.total -= new.total
    return (bound, new)
  }

  /// Removes an element that is there.
  ///
  /// - Complexity: O(log n).
  package mutating func remove(_ element: Element) {
    if !isKnownUniquelyReferenced(&root) { root = root.copy() }
    remove(element, from: root)
    while root.children.count == 1 { root = root.children[0] }
  }

  private func remove(_ element: Element, from page: Page) {
    page.total -= 1
    if page.isLeaf {
      let index = partitionPoint(page.elements) { $0 < element }
      precondition(
        index < page.elements.count && page.elements[index] == element,
        "what is removed from an index is in it")
      page.elements.remove(at: index)
    } else {
      let index = partitionPoint(page.bounds) { $0 < element || $0 == element }
      own(&page.children[index])
      remove(element, from: page.children[index])
      if page.children[index].entryCount < Self.pageLimit / 4 { merge(page, index) }
    }
  }

  /// Removes a page without entries; joins one that is nearly empty with one beside it, where both fit
  /// into one. Beside pages that are nearly full it may stay.
  private func merge(_ page: Page, _ index: Int) {
    let count = page.children[index].entryCount
    // Removed before pages are joined: an inner page without children looks like a leaf.
    if count == 0 {
      page.children.remove(at: index)
      if !page.bounds.isEmpty { page.bounds.remove(at: max(index - 1, 0)) }
      return
    }
    for left in [index - 1, index] where left >= 0 && left + 1 < page.children.count {
      let other = page.children[left == index ? index + 1 : left]
      guard count + other.entryCount <= Self.pageLimit * 3 / 4 else { continue }
      own(&page.children[left])
      let target = page.children[left]
      let source = page.children[left + 1]
      if target.isLeaf {
        target.elements += source.elements
      } else {
        target.children += source.children
        target.bounds.append(page.bounds[left])
        target.bounds += source.bounds
      }
      target.total += source.total
      page.children.remove(at: left + 1)
      page.bounds.remove(at: left)
      return
    }
  }

  private func own(_ page: inout Page) {
    if !isKnownUniquelyReferenced(&page) { page = page.copy() }
  }
}

/// Counts the comparisons that indexes make, for tests of their cost.
///
/// Any thread may use it; of comparisons made by two threads at once, one may not be counted.
package final class ComparisonTally: Sendable {
  private let value = Atomic<Int>(0)

  package init() {}

  package var count: Int { value.load(ordering: .relaxed) }

  func add() { value.store(value.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }
}

// MARK: - Invariants

extension OrderedIndex {
  /// What is wrong with the index; nil if nothing is. For tests.
  ///
  /// - Complexity: O(n).
  package var problem: String? {
    var last: Element?
    var depths: Set<Int> = []
    func check(_ page: Page, depth: Int) -> String? {
      if page.entryCount > Self.pageLimit { return "a page is too full" }
      if page.isLeaf {
        depths.insert(depth)
        if page.elements.isEmpty && depth > 0 { return "a page is empty" }
        for element in page.elements {
          if let last, !(last < element) { return "elements do not ascend" }
          last = element
        }
      } else {
        if page.children.count < 2 && depth == 0 { return "the root has one page" }
        if page.bounds.count != page.children.count - 1 { return "a bound is missing" }
        for (index, child) in page.children.enumerated() {
          if index > 0, let last, !(last < page.bounds[index - 1]) { return "a bound is too low" }
          if let problem = check(child, depth: depth + 1) { return problem }
          if index > 0, Self.first(of: child) < page.bounds[index - 1] {
            return "a bound is too high"
          }
        }
      }
      let total =
        page.isLeaf ? page.elements.count : page.children.reduce(0) { $0 + $1.total }
      return page.total == total ? nil : "a page counts wrongly"
    }
    return check(root, depth: 0) ?? (depths.count == 1 ? nil : "leaves differ in depth")
  }

  private static func first(of page: Page) -> Element {
    var page = page
    while !page.isLeaf { page = page.children[0] }
    return page.elements[0]
  }
}
