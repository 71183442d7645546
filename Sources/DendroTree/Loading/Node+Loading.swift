extension Node {
  /// Reads all pages of the node that were not read yet. Waits for the file on the calling thread.
  ///
  /// - Complexity: O(pages).
  package func load() throws(PageFailure) {
    guard case .page(let page) = content else { return }
    try page.unresolved.loadAll()
    withExtendedLifetime(page) {}
  }

  /// Whether `load()` has nothing to read.
  ///
  /// - Complexity: O(pages).
  package var isLoaded: Bool {
    guard case .page(let page) = content else { return true }
    return withExtendedLifetime(page) { page.unresolved.isLoaded }
  }

  /// Whether the node is in memory and has no page below it: it is a leaf, or a branch with one page and nothing
  /// but leaves in it. False for a larger branch, also if all of its pages are in memory.
  package var isLoadedAtAGlance: Bool {
    guard case .page(let page) = content else { return true }
    defer { withExtendedLifetime(page) {} }
    let access = page.unresolved
    let loaded = access.kind == .stub ? PageStub(access.header).loadedPage : access
    return loaded.map { !$0.hasReferences } ?? false
  }

  /// Reads the pages on the way to a path, and the root page of the branch there, so that a write finds them.
  ///
  /// - Complexity: O(depth · log children).
  package func load(along path: Path) throws(PageFailure) {
    try path.withStoredBytes { (bytes) throws(PageFailure) in try load(along: bytes) }
  }

  package func load(along storedPath: UnsafeRawBufferPointer) throws(PageFailure) {
    try load(along: storedPath, removalCount: 0)
  }

  /// `load(along:)` for a write that removes.
  ///
  /// The range of keys of a page that becomes empty falls to one beside it: there the rest of the write may have
  /// something to insert, and so may the undoing of the write. So pages beside those that may become empty are read
  /// too.
  ///
  /// - Parameters:
  ///   - storedPath: the stored form of a path.
  ///   - removalCount: the paths at which the write removes something, at most; 0 if it does not at this one.
  package func load(
    along storedPath: UnsafeRawBufferPointer, removalCount: Int
  ) throws(PageFailure) {
    _ = try descend(storedPath, removalCount) { (page) throws(PageFailure) in try page.loaded() }
  }

  /// Whether `load(along:removalCount:)` has nothing to read.
  package func isLoaded(along storedPath: UnsafeRawBufferPointer, removalCount: Int = 0) -> Bool {
    descend(storedPath, removalCount) { page in
      page.kind == .stub ? PageStub(page.header).loadedPage : page
    }
  }

  /// Follows a path as far as there are pages.
  ///
  /// - Parameter enter: returns the page that a reference leads to, or nil to end.
  /// - Returns: whether the end was reached.
  private func descend<E: Error>(
    _ storedPath: UnsafeRawBufferPointer, _ removalCount: Int,
    _ enter: (PageAccess) throws(E) -> PageAccess?
  ) throws(E) -> Bool {
    guard case .page(let root) = content else { return true }
    defer { withExtendedLifetime(root) {} }
    guard var page = try enter(root.unresolved) else { return false }
    guard page.kind != .box, let start = storedPath.baseAddress, !storedPath.isEmpty else {
      return true
    }
    var step = PathStep(start, end: start + storedPath.count)
    var inner: [(page: PageAccess, index: Int)] = []
    while true {
      inner.removeAll(keepingCapacity: true)
      while page.kind == .inner {
        let index = page.childIndex(step.key, step.keyCount)
        if removalCount > 0 { inner.append((page, index)) }
        guard let below = try enter(PageAccess(unresolved: page.reference(index))) else {
          return false
        }
        page = below
      }
      let (index, found) = page.find(step.key, step.keyCount)
      guard found else { return true }
      let refers = page.hasReferences && page.refers(index)
      let isRemoved =
        !step.hasRest
        || refers && PageAccess(unresolved: page.reference(index)).total <= removalCount
      if isRemoved, page.count <= removalCount, try !enterNeighbours(of: inner, removalCount, enter)
      {
        return false
      }
      guard refers else { return true }
      guard let below = try enter(PageAccess(unresolved: page.reference(index))) else {
        return false
      }
      page = below
      if page.kind == .box {
        guard page.refers(0) else { return true }
        guard let below = try enter(PageAccess(unresolved: page.reference(0))) else { return false }
        page = below
      }
      guard step.hasRest else { return true }
      step = step.next
    }
  }

  /// Enters the leaf pages to one of which the range of a leaf page falls that becomes empty.
  ///
  /// - Parameter inner: the inner pages above that page, and the entry taken in each. One becomes empty only if
  ///   everything below it does.
  private func enterNeighbours<E: Error>(
    of inner: [(page: PageAccess, index: Int)], _ removalCount: Int,
    _ enter: (PageAccess) throws(E) -> PageAccess?
  ) throws(E) -> Bool {
    for (page, index) in inner.reversed() {
      for neighbour in [index - 1, index + 1] where page.indices.contains(neighbour) {
        var slot = page.reference(neighbour)
        while true {
          guard let below = try enter(PageAccess(unresolved: slot)) else { return false }
          guard below.kind == .inner else { break }
          slot = below.reference(neighbour < index ? below.count - 1 : 0)
        }
      }
      if page.count > removalCount { break }
    }
    return true
  }
}

extension PageAccess {
  fileprivate var indices: Range<Int> { 0..<count }

  /// The page, which is read if this is a stub.
  fileprivate func loaded() throws(PageFailure) -> PageAccess {
    kind == .stub ? try PageStub(header).load() : self
  }

  /// Whether this page and all below it are in memory.
  fileprivate var isLoaded: Bool {
    guard let page = kind == .stub ? PageStub(header).loadedPage : self else { return false }
    guard page.hasReferences else { return true }
    return (0..<page.count).allSatisfy { index in
      guard page.kind == .inner || page.refers(index) else { return true }
      return PageAccess(unresolved: page.reference(index)).isLoaded
    }
  }

  fileprivate func loadAll() throws(PageFailure) {
    let page = try loaded()
    guard page.hasReferences else { return }
    for index in 0..<page.count where page.kind == .inner || page.refers(index) {
      try PageAccess(unresolved: page.reference(index)).loadAll()
    }
  }
}
