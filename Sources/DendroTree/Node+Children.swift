extension Node {
  /// The children in ascending or descending order, from a key or from the first or last child.
  ///
  /// The sequence retains the node; later changes do not affect it. Each step is O(1) on average.
  package struct Children: Sequence, @unchecked Sendable {  // See `Page`.
    let root: Page?
    let start: Key?
    let isReversed: Bool

    package func makeIterator() -> Iterator {
      Iterator(root: root, start: start, isReversed: isReversed)
    }
  }

  /// All children in the order of keys.
  package var children: Children { Children(root: branch, start: nil, isReversed: false) }

  /// The children at `key` and above, in the order of keys.
  package func children(from key: Key) -> Children {
    Children(root: branch, start: key, isReversed: false)
  }

  /// All children, in descending order of keys.
  package var reversedChildren: Children { Children(root: branch, start: nil, isReversed: true) }

  /// The children at `key` and below, in descending order of keys.
  package func reversedChildren(from key: Key) -> Children {
    Children(root: branch, start: key, isReversed: true)
  }

  /// Calls `body` with each child in the order of keys; faster than `children`.
  package func forEachChild<E: Error>(_ body: (Key, Node) throws(E) -> Void) throws(E) {
    guard let page = branch else { return }
    // Each page is retained by the page above it while it is visited.
    try Node.forEachChild(of: page.access, body)
    withExtendedLifetime(page) {}
  }

  private static func forEachChild<E: Error>(
    of page: PageAccess, _ body: (Key, Node) throws(E) -> Void
  ) throws(E) {
    for index in 0..<page.count {
      if page.kind == .inner {
        try forEachChild(of: PageAccess(page.reference(index)), body)
      } else {
        try body(page.keyValue(index), page.node(index))
      }
    }
  }

  /// Calls `body` with the bytes of all children if they are leaves in one page, as most objects are: for each in the
  /// order of keys the length of its key as LEB128, the key's ordered bytes, and the packed leaf.
  ///
  /// - Returns: whether that is so.
  package func withStoredLeaves(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
    guard let page = branch else { return false }
    return withExtendedLifetime(page) {
      let access = page.access
      guard access.kind == .leaf, !access.hasReferences else { return false }
      body(UnsafeRawBufferPointer(start: access.tail, count: Int(access.header.pointee.used)))
      return true
    }
  }

  /// Whether any child has a priority. If none has, ordering by priority equals ordering by key.
  ///
  /// - Complexity: O(1), since each page stores it.
  package var hasChildPriorities: Bool { branch?.hasPriorities ?? false }
}

extension PageAccess {
  @inline(__always)
  func keyValue(_ index: Int) -> Key {
    let key = key(index)
    return Key(trustedOrderedBytes: UnsafeRawBufferPointer(start: key.start, count: key.count))
  }
}

extension Node.Children {
  package struct Iterator: IteratorProtocol, @unchecked Sendable {  // See `Page`.
    // No page here is a stub: each stub is asked once, since its page may be readable the second time only.

    /// The current leaf page and the index of the next entry in it.
    private(set) var leaf: Page?
    private(set) var index = 0
    /// The inner pages from the root to the leaf page, and the index of the child page entered in each.
    private var above: [(page: Page, index: Int)] = []
    private let isReversed: Bool

    init(root: Page?, start: Key?, isReversed: Bool) {
      self.isReversed = isReversed
      guard var page = root?.resolved else { return }
      while page.unresolved.kind == .inner {
        let access = page.unresolved
        let index =
          start.map {
            $0.withOrderedBytes { access.childIndex($0.baseAddress.unsafelyUnwrapped, $0.count) }
          }
          ?? (isReversed ? access.count - 1 : 0)
        above.append((page, index))
        page = access.page(index).resolved
      }
      leaf = page
      guard let start else {
        index = isReversed ? page.unresolved.count - 1 : 0
        return
      }
      let (index, found) = start.withOrderedBytes {
        page.unresolved.find($0.baseAddress.unsafelyUnwrapped, $0.count)
      }
      self.index = isReversed && !found ? index - 1 : index
    }

    package mutating func next() -> (key: Key, node: Node)? {
      guard moveToEntry(), let leaf else { return nil }
      let access = leaf.unresolved
      defer { index += isReversed ? -1 : 1 }
      return (access.keyValue(index), access.node(index))
    }

    /// Moves to the next leaf page if the current one has no further entry. Returns false after the last
    /// child.
    mutating func moveToEntry() -> Bool {
      while let leaf {
        if index >= 0 && index < leaf.unresolved.count { return true }
        moveToNextPage()
      }
      return false
    }

    /// Moves to the first entry of the next leaf page.
    private mutating func moveToNextPage() {
      leaf = nil
      while let (page, index) = above.popLast() {
        let next = index + (isReversed ? -1 : 1)
        guard next >= 0 && next < page.unresolved.count else { continue }
        enter(page, next)
        return
      }
    }

    private mutating func enter(_ page: Page, _ index: Int) {
      above.append((page, index))
      var page = page.unresolved.page(index).resolved
      while page.unresolved.kind == .inner {
        let index = isReversed ? page.unresolved.count - 1 : 0
        above.append((page, index))
        page = page.unresolved.page(index).resolved
      }
      leaf = page
      self.index = isReversed ? page.unresolved.count - 1 : 0
    }

    /// If two ascending iterators are at the same entry of the same page, moves both behind the pages
    /// that they share from there on. Otherwise returns false.
    static func skipShared(_ a: inout Self, _ b: inout Self) -> Bool {
      guard let page = a.leaf, page === b.leaf, a.index == b.index else { return false }
      // Within a shared inner page, the pages that follow the shared leaf page are shared too.
      while let x = a.above.last, let y = b.above.last, x.page === y.page {
        a.above.removeLast()
        b.above.removeLast()
      }
      a.moveToNextPage()
      b.moveToNextPage()
      return true
    }
  }
}

extension PageAccess {
  /// The page, or the stub, below an entry of an inner page.
  func page(_ index: Int) -> Page {
    guard let page = reference(index).pointee else {
      preconditionFailure("an inner page has a reference in each entry")
    }
    return page
  }
}
