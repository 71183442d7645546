extension Node {
  /// The node at a stored path.
  func node(atStored path: UnsafeRawBufferPointer) -> Node {
    if path.isEmpty { return self }
    guard let page = branch else { return .empty }
    return withExtendedLifetime(page) { Pages.node(page.access, PathStep(stored: path)) }
  }

  /// What a change at a path has to know about the tree.
  struct Lookup {
    /// The node at the path.
    var existing = Node.empty
    /// The bytes of the path that lead to the leaf above it, if there is one.
    var leafByteCount: Int?
    /// The bytes of the path that lead to the highest node that is removed together with the node at the path.
    var prunedByteCount = 0
  }

  func lookUp(_ path: UnsafeRawBufferPointer) -> Lookup {
    guard let start = path.baseAddress, !path.isEmpty else { return Lookup(existing: self) }
    guard let page = branch else { return Lookup(leafByteCount: isEmpty ? nil : 0) }
    return withExtendedLifetime(page) {
      var lookup = Lookup()
      lookup.descend(page.access, PathStep(start, end: start + path.count), start)
      return lookup
    }
  }
}

extension Node.Lookup {
  /// Follows a path down from a branch without retaining pages.
  ///
  /// - Parameter start: where the whole path begins.
  mutating func descend(_ root: PageAccess, _ path: PathStep, _ start: UnsafeRawPointer) {
    var root = root
    var step = path
    while true {
      let end = step.rest - start
      if root.total > 1 { prunedByteCount = end }
      guard let (page, index) = Pages.find(root, step.key, step.keyCount) else { return }
      if !step.hasRest {
        existing = page.node(index)
        return
      }
      guard let branch = page.branchReference(index) else {
        let node = page.node(index)
        if let boxed = node.branch {
          descend(boxed.access, step.next, start)
          withExtendedLifetime(boxed) {}
        } else {
          leafByteCount = end
        }
        return
      }
      root = PageAccess(branch)
      step = step.next
    }
  }
}
