/// One replaced node. Events are generated from changes, and writes are undone with them.
package struct Change: Sendable {
  package var path: Path
  package var replaced: Node
  package var new: Node

  package init(path: Path, replaced: Node, new: Node) {
    self.path = path
    self.replaced = replaced
    self.new = new
  }
}

extension Node {
  /// Applies a valid write. Pages that no other value shares are changed in place.
  ///
  /// The path of a change is that of the topmost node that differs: the path of the write, the highest
  /// ancestor that is removed with its last child, or the leaf that a write below it turns into a
  /// branch. The changes of an update are in the order in which they were made: data in the order of
  /// paths, then priorities. The path of a later change may lie below that of an earlier one.
  ///
  /// - Returns: the changes; none if the tree equals the one before (1 equals 1.0).
  /// - Complexity: O(depth · log children), and the comparison of the replaced node with the new one.
  package mutating func apply(_ write: Write) -> [Change] {
    var changes: [Change] = []
    apply(write, recording: &changes)
    return changes
  }

  /// Applies a valid write as `apply(_:)` does, and appends its changes to `changes`.
  ///
  /// If the write sets a leaf and the caller has its packed form, it may be passed as `packed`. It is
  /// copied without being validated, and ignored for other writes. With `isKnownToDiffer` the node that is
  /// set is not compared with the one that it replaces.
  package mutating func apply(
    _ write: Write, packed: UnsafeRawBufferPointer? = nil, isKnownToDiffer: Bool = false,
    recording changes: inout [Change]
  ) {
    switch write {
    case .set(let path, let node):
      set(node, packed, isKnownToDiffer: isKnownToDiffer, at: path, &changes)
    case .remove(let path): set(.empty, at: path, &changes)
    case .increment(let path, let delta): increment(delta, at: path, &changes)
    case .setPriority(let path, let priority): setPriority(priority, at: path, &changes)
    case .update(let base, let entries):
      let sorted = entries.inOrder
      for entry in sorted where !entry.action.isPriority {
        let path = base.appending(entry.path)
        switch entry.action {
        case .set(let node): set(node, at: path, &changes)
        case .remove: set(.empty, at: path, &changes)
        case .increment(let delta): increment(delta, at: path, &changes)
        case .setPriority: break
        }
      }
      for entry in sorted {
        if case .setPriority(let priority) = entry.action {
          setPriority(priority, at: base.appending(entry.path), &changes)
        }
      }
    }
  }

  /// Makes `node` the node at `path`, for example to undo a change.
  ///
  /// `for change in changes.reversed() { root.graft(change.replaced, at: change.path) }` restores
  /// exactly the tree before the write that returned these changes.
  ///
  /// - Complexity: O(depth · log children).
  package mutating func graft(_ node: Node, at path: Path) {
    assign(node, at: path)
  }

  private mutating func set(
    _ new: Node, _ packed: UnsafeRawBufferPointer? = nil, isKnownToDiffer: Bool = false,
    at path: Path, _ changes: inout [Change]
  ) {
    let target = lookUp(path)
    if new.isEmpty {
      if target.existing.isEmpty { return }
      let pruned = path.prefix(target.prunedDepth)
      let replaced = target.prunedDepth == path.count ? target.existing : node(at: pruned)
      assign(.empty, at: pruned)
      changes.append(Change(path: pruned, replaced: replaced, new: .empty))
    } else if let depth = target.leafDepth {
      let leaf = path.prefix(depth)
      let replaced = node(at: leaf)
      assign(new, at: path)
      changes.append(Change(path: leaf, replaced: replaced, new: node(at: leaf)))
    } else if isKnownToDiffer || target.existing.isEmpty || target.existing != new {
      // A long leaf that already has a box is assigned as a node, which shares the box instead of copying
      // it.
      if let packed, case .scalar = new.content {
        path.withStoredBytes { assign(.packed(packed), at: $0) }
      } else {
        assign(new, at: path)
      }
      changes.append(Change(path: path, replaced: target.existing, new: new))
    }
  }

  private mutating func increment(_ delta: Number, at path: Path, _ changes: inout [Change]) {
    set(Node(delta.incrementing(node(at: path).scalar)), at: path, &changes)
  }

  private mutating func setPriority(
    _ priority: Scalar?, at path: Path, _ changes: inout [Change]
  ) {
    let existing = node(at: path)
    if existing.isEmpty || existing.priority == priority { return }
    let new = existing.settingPriority(priority)
    assign(new, at: path)
    changes.append(Change(path: path, replaced: existing, new: new))
  }

  /// What a write at a path has to know about the tree.
  fileprivate struct Lookup {
    /// The node at the path.
    var existing = Node.empty
    /// The depth of the leaf above the path, if there is one.
    var leafDepth: Int?
    /// The depth of the highest node that is removed together with the node at the path.
    var prunedDepth = 0
  }

  private func lookUp(_ path: Path) -> Lookup {
    if path.isRoot { return Lookup(existing: self) }
    guard let page = branch else { return Lookup(leafDepth: isEmpty ? nil : 0) }
    return withExtendedLifetime(page) {
      path.withStoredBytes { bytes in
        let start = bytes.baseAddress.unsafelyUnwrapped
        var lookup = Lookup()
        lookup.descend(page.access, PathStep(start, end: start + bytes.count), depth: 0)
        return lookup
      }
    }
  }
}

extension Node.Lookup {
  /// Follows the path down from the branch at `depth` whose root page is `root`, without retaining
  /// pages.
  fileprivate mutating func descend(_ root: PageAccess, _ path: PathStep, depth: Int) {
    var root = root
    var step = path
    var depth = depth
    while true {
      if root.total > 1 { prunedDepth = depth + 1 }
      guard let (page, index) = Pages.find(root, step.key, step.keyCount) else { return }
      depth += 1
      if !step.hasRest {
        existing = page.node(index)
        return
      }
      guard let branch = page.branchReference(index) else {
        let node = page.node(index)
        if let boxed = node.branch {
          descend(boxed.access, step.next, depth: depth)
          withExtendedLifetime(boxed) {}
        } else {
          leafDepth = depth
        }
        return
      }
      root = PageAccess(branch)
      step = step.next
    }
  }
}
