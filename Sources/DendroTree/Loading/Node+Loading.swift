extension Node {
  /// Reads all pages of the node that were not read yet. Waits for the file on the calling thread.
  ///
  /// - Complexity: O(pages).
  package func load() throws(PageFailure) {
    guard case .page(let page) = content else { return }
    try page.unresolved.loadAll()
    withExtendedLifetime(page) {}
  }

  /// Whether the node is in memory and has no page below it: it is a leaf, or a branch with one page and nothing
  /// but leaves in it. False for a larger branch, also where all of its pages are in memory.
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
    _ = try descend(storedPath) { (page) throws(PageFailure) in try page.loaded() }
  }

  /// Whether `load(along:)` has nothing to read.
  package func isLoaded(along storedPath: UnsafeRawBufferPointer) -> Bool {
    descend(storedPath) { page in
      page.kind == .stub ? PageStub(page.header).loadedPage : page
    }
  }

  /// Follows a path as far as there are pages.
  ///
  /// - Parameter enter: returns the page that a reference leads to, or nil to end.
  /// - Returns: whether the end was reached.
  private func descend<E: Error>(
    _ storedPath: UnsafeRawBufferPointer, _ enter: (PageAccess) throws(E) -> PageAccess?
  ) throws(E) -> Bool {
    guard case .page(let root) = content else { return true }
    defer { withExtendedLifetime(root) {} }
    guard var page = try enter(root.unresolved) else { return false }
    guard page.kind != .box, let start = storedPath.baseAddress, !storedPath.isEmpty else {
      return true
    }
    var step = PathStep(start, end: start + storedPath.count)
    while true {
      while page.kind == .inner {
        let index = page.childIndex(step.key, step.keyCount)
        guard let below = try enter(PageAccess(unresolved: page.reference(index))) else {
          return false
        }
        page = below
      }
      let (index, found) = page.find(step.key, step.keyCount)
      guard found, page.hasReferences, page.refers(index) else { return true }
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

  // MARK: Writes

  /// Reads the pages that a write needs.
  package func load(for draft: Draft) throws(PageFailure) {
    try draft.forEachPath { (path) throws(PageFailure) in try load(along: path) }
  }

  /// Whether `load(for:)` has nothing to read.
  package func isLoaded(for draft: Draft) -> Bool {
    var isLoaded = true
    draft.forEachPath { path in
      isLoaded = isLoaded && path.withStoredBytes { self.isLoaded(along: $0) }
    }
    return isLoaded
  }
}

extension Draft {
  /// Calls `body` with the paths that the write changes or reads.
  fileprivate func forEachPath<E: Error>(_ body: (Path) throws(E) -> Void) throws(E) {
    let base = write.path
    try body(base)
    if case .update(_, let entries) = write {
      for entry in entries { try body(base.appending(entry.path)) }
    }
    for value in deferred { try body(base.appending(value.path)) }
  }
}

extension PageAccess {
  /// The page, which is read where this is a stub.
  fileprivate func loaded() throws(PageFailure) -> PageAccess {
    kind == .stub ? try PageStub(header).load() : self
  }

  fileprivate func loadAll() throws(PageFailure) {
    let page = try loaded()
    guard page.hasReferences else { return }
    for index in 0..<page.count where page.kind == .inner || page.refers(index) {
      try PageAccess(unresolved: page.reference(index)).loadAll()
    }
  }
}
