extension Node {
  /// Calls `body` with each key of either branch and the two nodes at it, in the order of keys, until it
  /// returns false. Keys at which the branches share storage may be skipped.
  ///
  /// - Complexity: O(pages that the two branches do not share).
  static func forEachUnshared<E: Error>(
    _ a: Node, _ b: Node, _ body: (Key, Node, Node) throws(E) -> Bool
  ) throws(E) {
    if a.isIdentical(to: b) { return }
    guard let left = a.branch, let right = b.branch else {
      _ = try UnsharedEntries.merge(a.children, b.children, body)
      return
    }
    _ = try UnsharedEntries.visit(left, right, body)
  }
}

/// Finds the entries in which two trees of pages differ.
///
/// Most states of a branch differ in a few entries, and their pages have the same bounds: then a pair of
/// inner pages is compared reference by reference, and only children that differ are read. If a page was
/// split or merged in between, the entries below it are merged one by one.
private enum UnsharedEntries {
  /// - Returns: false once `body` has.
  static func visit<E: Error>(
    _ a: Page, _ b: Page, _ body: (Key, Node, Node) throws(E) -> Bool
  ) throws(E) -> Bool {
    let (left, right) = (a.access, b.access)
    defer { withExtendedLifetime((a, b)) {} }
    switch (left.kind, right.kind) {
    case (.leaf, .leaf):
      return try merge(left, right, body)
    case (.inner, .inner) where haveSameBounds(left, right):
      for index in 0..<left.count where !areSame(left, right, index) {
        if try !visit(left.page(index), right.page(index), body) { return false }
      }
      return true
    default:
      return try merge(
        Node.Children(root: a, start: nil, isReversed: false),
        Node.Children(root: b, start: nil, isReversed: false), body)
    }
  }

  @inline(__always)
  private static func areSame(_ a: PageAccess, _ b: PageAccess, _ index: Int) -> Bool {
    address(a, index) == address(b, index)
  }

  /// What a reference refers to, without retaining it; nil if an entry has none.
  @inline(__always)
  private static func address(_ page: PageAccess, _ index: Int) -> UnsafeRawPointer? {
    UnsafeRawPointer(page.reference(index)).load(as: UnsafeRawPointer?.self)
  }

  /// Whether two entries of leaf pages have the same bytes and the same reference. Equal values may differ
  /// in both.
  private static func haveSameValue(_ a: PageAccess, _ i: Int, _ b: PageAccess, _ j: Int) -> Bool {
    let (x, y) = (a.value(i), b.value(j))
    guard x.count == y.count, let start = x.baseAddress, let other = y.baseAddress,
      compareBytes(start, x.count, other, y.count) == 0
    else { return false }
    let reference = a.hasReferences ? address(a, i) : nil
    return reference == (b.hasReferences ? address(b, j) : nil)
  }

  /// Whether the children that two inner pages do not share have the same ranges of keys in both. The first
  /// child has no lower bound.
  private static func haveSameBounds(_ a: PageAccess, _ b: PageAccess) -> Bool {
    guard a.count == b.count else { return false }
    for index in 0..<a.count where !areSame(a, b, index) {
      if index > 0, !haveSameKey(a, b, index) { return false }
      if index + 1 < a.count, !haveSameKey(a, b, index + 1) { return false }
    }
    return true
  }

  private static func haveSameKey(_ a: PageAccess, _ b: PageAccess, _ index: Int) -> Bool {
    let (x, y) = (a.key(index), b.key(index))
    return compareBytes(x.start, x.count, y.start, y.count) == 0
  }

  /// Two leaf pages.
  private static func merge<E: Error>(
    _ a: PageAccess, _ b: PageAccess, _ body: (Key, Node, Node) throws(E) -> Bool
  ) throws(E) -> Bool {
    var (i, j) = (0, 0)
    while i < a.count || j < b.count {
      let order: Int
      if i == a.count {
        order = 1
      } else if j == b.count {
        order = -1
      } else {
        let (x, y) = (a.key(i), b.key(j))
        order = compareBytes(x.start, x.count, y.start, y.count)
      }
      if order < 0 {
        if try !body(a.keyValue(i), a.node(i), .empty) { return false }
        i += 1
      } else if order > 0 {
        if try !body(b.keyValue(j), .empty, b.node(j)) { return false }
        j += 1
      } else {
        if !haveSameValue(a, i, b, j) {
          let (x, y) = (a.node(i), b.node(j))
          if !x.isIdentical(to: y), try !body(a.keyValue(i), x, y) { return false }
        }
        i += 1
        j += 1
      }
    }
    return true
  }

  /// Children of any pages, which need not have the same bounds.
  static func merge<E: Error>(
    _ a: Node.Children, _ b: Node.Children, _ body: (Key, Node, Node) throws(E) -> Bool
  ) throws(E) -> Bool {
    var left = a.makeIterator()
    var right = b.makeIterator()
    var x: (key: Key, node: Node)?
    var y: (key: Key, node: Node)?
    while true {
      if x == nil && y == nil {
        while left.moveToEntry(), right.moveToEntry(),
          Node.Children.Iterator.skipShared(&left, &right)
        {}
      }
      if x == nil { x = left.next() }
      if y == nil { y = right.next() }
      switch (x, y) {
      case (let p?, let q?) where p.key == q.key:
        if !p.node.isIdentical(to: q.node), try !body(p.key, p.node, q.node) { return false }
        x = nil
        y = nil
      case (let p?, let q) where q.map({ p.key < $0.key }) ?? true:
        if try !body(p.key, p.node, .empty) { return false }
        x = nil
      case (_, let q?):
        if try !body(q.key, .empty, q.node) { return false }
        y = nil
      default: return true
      }
    }
  }
}
