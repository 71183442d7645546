/// One replaced node: what events are made from, and what takes a write back.
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
  /// Applies a valid write, in place where nothing else holds what changes.
  ///
  /// A change is told where the first difference is seen from the root: at the ancestor that
  /// vanishes when its last child does, and at the leaf that a write below it turns into a branch.
  /// The changes of an update are in the order in which they were made, data in the order of paths,
  /// then priorities; a later one may lie below an earlier one.
  ///
  /// - Returns: the changes; none if the tree is as before (equal numbers are equal).
  /// - Complexity: O(depth · log children), and comparing what is replaced with what replaces it.
  package mutating func apply(_ write: Write) -> [Change] {
    var changes: [Change] = []
    apply(write, recording: &changes)
    return changes
  }

  /// `apply(_:)` that appends the changes to what is there already, for callers that keep many.
  ///
  /// Where the write sets a leaf, its packed form may be given, and is copied as it is; it is not looked at
  /// otherwise.
  package mutating func apply(
    _ write: Write, packed: UnsafeRawBufferPointer? = nil, recording changes: inout [Change]
  ) {
    switch write {
    case .set(let path, let node): set(node, packed, at: path, &changes)
    case .remove(let path): set(.empty, at: path, &changes)
    case .increment(let path, let delta): increment(delta, at: path, &changes)
    case .setPriority(let path, let priority): setPriority(priority, at: path, &changes)
    case .update(let base, let entries):
      let sorted = entries.count > 1 ? entries.sorted { $0.path < $1.path } : entries
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

  /// Takes back one change: makes `node` what is at `path`.
  ///
  /// `for change in changes.reversed() { root.graft(change.replaced, at: change.path) }` gives
  /// exactly the tree before the write that reported them.
  ///
  /// - Complexity: O(depth · log children).
  package mutating func graft(_ node: Node, at path: Path) {
    assign(node, at: path)
  }

  private mutating func set(
    _ new: Node, _ packed: UnsafeRawBufferPointer? = nil, at path: Path, _ changes: inout [Change]
  ) {
    let place = locate(path)
    if new.isEmpty {
      if place.existing.isEmpty { return }
      let pruned = path.prefix(place.prunedDepth)
      let replaced = place.prunedDepth == path.count ? place.existing : node(at: pruned)
      assign(.empty, at: pruned)
      changes.append(Change(path: pruned, replaced: replaced, new: .empty))
    } else if let depth = place.leafDepth {
      let leaf = path.prefix(depth)
      let replaced = node(at: leaf)
      assign(new, at: path)
      changes.append(Change(path: leaf, replaced: replaced, new: node(at: leaf)))
    } else if place.existing.isEmpty || place.existing != new {
      // A long leaf that is in a box already is not copied: the box is shared.
      if let packed, case .scalar = new.content {
        path.withStoredBytes { assign(.packed(packed), at: $0) }
      } else {
        assign(new, at: path)
      }
      changes.append(Change(path: path, replaced: place.existing, new: new))
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

  fileprivate struct Place {
    var existing = Node.empty
    /// The depth of the leaf above the path, if there is one.
    var leafDepth: Int?
    /// The depth of the highest node that would be empty without what is at the path.
    var prunedDepth = 0
  }

  private func locate(_ path: Path) -> Place {
    if path.isRoot { return Place(existing: self) }
    guard let page = branch else { return Place(leafDepth: isEmpty ? nil : 0) }
    return withExtendedLifetime(page) {
      path.withStoredBytes { bytes in
        let start = bytes.baseAddress.unsafelyUnwrapped
        var place = Place()
        place.locate(page.access, PathStep(start, end: start + bytes.count), depth: 0)
        return place
      }
    }
  }
}

extension Node.Place {
  /// Goes down from the branch at `depth` with that root page; retains nothing on its way.
  fileprivate mutating func locate(_ root: PageAccess, _ path: PathStep, depth: Int) {
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
          locate(boxed.access, step.next, depth: depth)
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
