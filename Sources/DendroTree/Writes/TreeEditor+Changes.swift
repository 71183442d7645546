// One change: a write's, or that of an entry of an update.
extension TreeEditor {
  /// Makes one change, whose value begins at `next`, and moves `next` to its end.
  @inline(__always)
  mutating func change(
    _ kind: WriteKind, at path: UnsafeRawBufferPointer, _ next: inout UnsafeRawPointer,
    _ value: Value, _ note: Noting
  ) {
    switch kind {
    case .set:
      let byteCount = BodyBytes.shortLeafByteCount(next)
      guard byteCount > 0 else {
        let new = value.node(&next)
        if let branch = new.plainBranch, exchange(.insert(branch), at: path, note) { return }
        return setNode(new, at: path, value, note)
      }
      let leaf = UnsafeRawBufferPointer(start: next, count: byteCount)
      next += byteCount
      if !exchange(.set(leaf), at: path, note) {
        setNode(Node(packedLeaf: leaf), at: path, value, note)
      }
    case .increment:
      let (delta, byteCount) = PackedScalar.numberTrusted(next)
      next += byteCount
      if !exchange(.increment(delta), at: path, note) {
        increment(by: delta, at: path, value, note)
      }
    case .remove: setNode(.empty, at: path, value, note)
    case .setPriority:
      var priority: Scalar?
      if next.load(as: UInt8.self) != 0 {
        let (scalar, byteCount) = PackedScalar.readTrusted(next + 1)
        priority = scalar
        next += byteCount
      }
      next += 1
      setPriority(priority, at: path, note)
    case .update: preconditionFailure("an update is no single change")
    }
  }

  /// Edits a short leaf in one descent, from the last place if that is near.
  ///
  /// - Returns: false if there is more to it; nothing was done then.
  @inline(__always)
  mutating func exchange(
    _ edit: LeafEdit, at path: UnsafeRawBufferPointer, _ note: Noting
  ) -> Bool {
    guard page != nil, let start = path.baseAddress, !path.isEmpty else { return false }
    var place = Pages.Place()
    let outcome: LeafEdit.Outcome
    if let branch, let step = siblingStep(start, end: start + path.count) {
      outcome = Pages.exchange(branch, step, edit, &place) { note(path, .leaf($0)) }
    } else {
      outcome = withUnsafeMutablePointer(to: &page) {
        Pages.exchange($0, PathStep(start, end: start + path.count), edit, &place) {
          note(path, .leaf($0))
        }
      }
    }
    remember(place, in: start)
    switch outcome {
    case .unloaded: return loadsPages && exchangeLoading(edit, at: path, note)
    case .declined: return false
    case .unchanged: return true
    case .inserted: note(path, .nothing)
    case .replaced: break
    }
    return true
  }

  /// `exchange`, after the pages on the way were read.
  @inline(never)
  private mutating func exchangeLoading(
    _ edit: LeafEdit, at path: UnsafeRawBufferPointer, _ note: Noting
  ) -> Bool {
    load(path, removes: false) ? exchange(edit, at: path, note) : true
  }

  // MARK: What is more than a leaf

  private mutating func setNode(
    _ new: Node, at path: UnsafeRawBufferPointer, _ value: Value, _ note: Noting
  ) {
    guard load(path, removes: new.isEmpty) else { return }
    forget()
    putBack()
    defer { page = tree.takeBranch() }
    let target = tree.lookUp(path)
    if new.isEmpty {
      if target.existing.isEmpty { return }
      let pruned = UnsafeRawBufferPointer(rebasing: path[..<target.prunedByteCount])
      let replaced = pruned.count == path.count ? target.existing : tree.node(atStored: pruned)
      tree.assign(.node(.empty), at: pruned)
      note(pruned, .node(replaced))
    } else if let byteCount = target.leafByteCount {
      let leaf = UnsafeRawBufferPointer(rebasing: path[..<byteCount])
      let replaced = tree.node(atStored: leaf)
      tree.assign(.node(new), at: path)
      note(leaf, .node(replaced))
    } else if value.isKnownToDiffer || target.existing.isEmpty
      || differs(target.existing, new)
    {
      tree.assign(.node(new), at: path)
      note(path, target.existing.isEmpty ? .nothing : .node(target.existing))
    }
  }

  private mutating func increment(
    by delta: Number, at path: UnsafeRawBufferPointer, _ value: Value, _ note: Noting
  ) {
    guard load(path, removes: false) else { return }
    putBack()
    let sum = Node(delta.incrementing(tree.node(atStored: path).scalar))
    page = tree.takeBranch()
    setNode(sum, at: path, value, note)
  }

  private mutating func setPriority(
    _ priority: Scalar?, at path: UnsafeRawBufferPointer, _ note: Noting
  ) {
    guard load(path, removes: false) else { return }
    forget()
    putBack()
    defer { page = tree.takeBranch() }
    let existing = tree.node(atStored: path)
    if existing.isEmpty || existing.priority == priority { return }
    let new = existing.settingPriority(priority)
    tree.assign(.node(new), at: path)
    note(path, .node(existing))
  }

  /// Whether two nodes differ; false if a page of the first one could not be read.
  private mutating func differs(_ existing: Node, _ new: Node) -> Bool {
    if loadsPages, existing.isBranch, existing.childCount == new.childCount {
      do throws(PageFailure) {
        try existing.load()
      } catch {
        failure = error
        return false
      }
    }
    return existing != new
  }

  /// Reads the pages that a change at a path needs, if this editor does.
  ///
  /// - Returns: false if a page could not be read.
  private mutating func load(_ path: UnsafeRawBufferPointer, removes: Bool) -> Bool {
    guard loadsPages else { return true }
    if failure != nil { return false }
    putBack()
    defer { page = tree.takeBranch() }
    do throws(PageFailure) {
      try tree.load(along: path, removalCount: removes ? removalCount : 0)
      return true
    } catch {
      failure = error
      return false
    }
  }
}
