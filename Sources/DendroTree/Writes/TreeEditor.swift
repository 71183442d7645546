/// Owns a tree, and is the one way in which it changes: by live writes, in replay, in followers, for previews.
///
/// Between two changes it may remember where the last one ended, so that a write of a sibling need not go down from
/// the root. That place is a slot in a page. It stays right as long as nothing but this editor changes pages of the
/// tree, and nothing else has got a reference to one of them: so the tree can be taken only once the place is
/// forgotten (`forget`), and an editor whose tree others may read between two writes does not remember
/// (`remembersPlace`).
package struct TreeEditor: ~Copyable {
  /// Empty while a change is made whose root page is in `page`.
  private var tree: Node
  /// The root page of the tree, taken out of it for the time of a change: the only reference to it.
  private var page: Page?
  /// The stored path of the last change; memory for `EntryReader.pathByteCountMax` bytes.
  private let path: UnsafeMutableRawPointer
  /// The slot of the root page of the branch in which the last change was, while it is known.
  private var branch: UnsafeMutablePointer<Page?>?
  /// The bytes of `path` that lead to that branch.
  private var branchByteCount = 0
  private let remembersPlace: Bool
  private let loadsPages: Bool
  /// Why a page could not be read: nothing more is changed then.
  private var failure: PageFailure?
  /// The entries of the write that remove something.
  private var removalCount = 0

  /// What a change replaces.
  package enum Replaced {
    case nothing
    /// A short leaf in its packed form, its priority included, valid during the call only.
    case leaf(UnsafeRawBufferPointer)
    case node(Node)
  }

  /// Gets the stored path of a change, which is valid during the call only.
  package typealias Noting = (UnsafeRawBufferPointer, Replaced) -> Void

  /// - Parameters:
  ///   - tree: to be changed. If nothing else refers to it, its pages are changed in place.
  ///   - remembersPlace: whether neighbouring writes are applied faster, and the tree is not taken between two of
  ///     them without `forget()`.
  ///   - loadsPages: whether the editor reads pages that are not in memory. If false, the caller must have read those
  ///     that a write needs.
  package init(_ tree: consuming Node, remembersPlace: Bool, loadsPages: Bool = false) {
    self.tree = tree
    self.remembersPlace = remembersPlace
    self.loadsPages = loadsPages
    path = .allocate(byteCount: EntryReader.pathByteCountMax, alignment: 8)
  }

  deinit { path.deallocate() }

  /// Ends the editing, and returns the tree.
  package consuming func finish() -> Node {
    var tree = Node.empty
    swap(&tree, &self.tree)
    return tree
  }

  /// The tree. Not while a place is remembered.
  @inline(__always)
  package var root: Node {
    precondition(
      branch == nil, "the place of the last change is forgotten before the tree is taken")
    return tree
  }

  /// The address of the root page, of which no reference is counted.
  @inline(__always)
  package var rootAddress: BranchAddress? { BranchAddress(of: tree) }

  /// Replaces the tree.
  package mutating func replace(by tree: Node) {
    forget()
    self.tree = tree
  }

  /// Forgets where the last change was.
  @inline(__always)
  package mutating func forget() { branch = nil }

  // MARK: Applying

  /// Applies a write without server values, whose pages are in memory.
  ///
  /// A change is that of the topmost node that differs: the path of the write, the highest ancestor that is removed
  /// with its last child, or the leaf that a write below it turns into a branch. Those of an update come in the order
  /// in which they are made: data in the order of paths, then priorities. The path of a later one may lie below that
  /// of an earlier one. There is none if the tree equals the one before (1 equals 1.0).
  ///
  /// - Parameters:
  ///   - write: what is applied.
  ///   - isKnownToDiffer: whether the tree that is set differs from the one in its place: the two are not compared then.
  ///   - note: called for each change with what it replaces, before or after it is made.
  /// - Complexity: O(depth · log children) for each entry, and the comparison of the replaced node with the new one.
  @inlinable @inline(__always)
  package mutating func apply(
    _ write: WriteView, isKnownToDiffer: Bool = false, note: Noting
  ) {
    // In parts, which stay in registers.
    if write.kind == .update {
      applyUpdate(write, note)
    } else {
      applySingle(
        write.kind, write.path, write.body, write.facts, write.owner,
        isKnownToDiffer: isKnownToDiffer, note)
    }
  }

  @usableFromInline
  mutating func applyUpdate(_ write: WriteView, _ note: Noting) {
    precondition(!write.facts.hasServerValues, Self.unresolved)
    let base = write.path
    precondition(base.count <= EntryReader.pathByteCountMax, Self.tooLong)
    removalCount = write.facts.removalCount
    page = tree.takeBranch()
    defer { putBack() }
    forget()
    if let start = base.baseAddress { path.copyMemory(from: start, byteCount: base.count) }
    if write.facts.isOrdered {
      applyInOrder(write, note)
    } else {
      applySorted(write, note)
    }
    forget()
  }

  @usableFromInline
  mutating func applySingle(
    _ kind: WriteKind, _ path: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer,
    _ facts: WriteFacts, _ owner: Unmanaged<EncodedWrite>?, isKnownToDiffer: Bool, _ note: Noting
  ) {
    precondition(!facts.hasServerValues, Self.unresolved)
    precondition(path.count <= EntryReader.pathByteCountMax, Self.tooLong)
    removalCount = facts.removalCount
    page = tree.takeBranch()
    defer { putBack() }
    var next = body.baseAddress ?? UnsafeRawPointer(self.path)
    let value = Value(owner, facts, isKnownToDiffer)
    if remembersPlace {
      recall(for: path)
      let own = UnsafeRawBufferPointer(start: self.path, count: path.count)
      change(kind, at: own, &next, value, note)
    } else {
      change(kind, at: path, &next, value, note)
      forget()
    }
  }

  private static var unresolved: String { "server values are resolved before a write is applied" }
  private static var tooLong: String { "a path has \(Limits.depth) keys at most" }

  /// Applies a write as the method above does, and reads the pages that it needs where they are in a file.
  ///
  /// - Throws: why a page could not be read. The tree may have a part of the write then.
  package mutating func applyLoading(_ write: WriteView) throws(PageFailure) {
    apply(write) { _, _ in }
    if let failure { throw failure }
  }

  /// Puts a node to a path, for example to undo a change.
  ///
  /// - Complexity: O(depth · log children).
  package mutating func graft(_ node: Node, at path: Path) {
    forget()
    tree.graft(node, at: path)
  }

  /// How the value of a write is read.
  private struct Value {
    private let owner: Unmanaged<EncodedWrite>?
    private let hasOrderedChildren: Bool
    let isKnownToDiffer: Bool

    @inline(__always)
    init(_ owner: Unmanaged<EncodedWrite>?, _ facts: WriteFacts, _ isKnownToDiffer: Bool = false) {
      self.owner = owner
      hasOrderedChildren = facts.hasOrderedChildren
      self.isKnownToDiffer = isKnownToDiffer
    }

    func node(_ next: inout UnsafeRawPointer) -> Node {
      let trees = owner.map { $0._withUnsafeGuaranteedRef { $0.trees } } ?? []
      return BodyBytes.node(&next, trees, hasOrderedChildren: hasOrderedChildren)
    }
  }

  // MARK: Updates

  private mutating func applyInOrder(_ write: WriteView, _ note: Noting) {
    let value = Value(write.owner, write.facts)
    var entries = EntryReader(write.body, path: path, baseByteCount: write.path.count)
    while failure == nil, entries.advance() {
      if entries.sharedByteCount < branchByteCount { forget() }
      if applyRun(&entries, note) { continue }
      change(entries.kind, at: entries.wholePath, &entries.next, value, note)
    }
  }

  /// The most leaves that are made one page.
  private static let runCountMax = 64

  /// Applies the set of a short leaf and those of its siblings that follow: as one page, if their branch is not there
  /// yet.
  ///
  /// - Returns: false if no sibling follows, or the branch is known; nothing was done then.
  @inline(__always)
  private mutating func applyRun(_ entries: inout EntryReader, _ note: Noting) -> Bool {
    guard branch == nil, page != nil, entries.kind == .set, entries.remaining > 0,
      BodyBytes.shortLeafByteCount(entries.next) > 0
    else { return false }
    return applyNewRun(&entries, note)
  }

  private mutating func applyNewRun(_ entries: inout EntryReader, _ note: Noting) -> Bool {
    let parentByteCount = entries.parentByteCount
    var ahead = entries
    ahead.skipValue()
    guard parentByteCount > 0, ahead.siblingByteCount(below: parentByteCount) > 0 else {
      return false
    }
    return withUnsafeTemporaryAllocation(of: UInt16.self, capacity: Self.runCountMax) { offsets in
      withUnsafeTemporaryAllocation(byteCount: Page.plainByteCountMax, alignment: 8) { room in
        var count = 0
        var byteCount = 0
        while true {
          offsets[count] = UInt16(truncatingIfNeeded: byteCount)
          count &+= 1
          let keyByteCount = entries.pathByteCount &- parentByteCount
          let leafByteCount = BodyBytes.shortLeafByteCount(entries.next)
          let target = room.baseAddress.unsafelyUnwrapped + byteCount
          target.copyMemory(from: path + parentByteCount, byteCount: keyByteCount)
          (target + keyByteCount).copyMemory(from: entries.next, byteCount: leafByteCount)
          byteCount &+= keyByteCount &+ leafByteCount
          entries.next += leafByteCount
          let more = entries.siblingByteCount(below: parentByteCount)
          guard more > 0, count < Self.runCountMax,
            byteCount &+ more &+ 2 &* (count &+ 1) <= Page.plainByteCountMax
          else { break }
          _ = entries.advance()
        }
        let run = PageEntries(
          bytes: UnsafeRawBufferPointer(rebasing: room[..<byteCount]),
          offsets: UnsafeBufferPointer(rebasing: offsets[..<count]))
        let parent = UnsafeRawBufferPointer(start: path, count: parentByteCount)
        if !exchange(.insertEntries(run), at: parent, note) {
          applyOneByOne(run, below: parentByteCount, note)
        }
        return true
      }
    }
  }

  /// Sets leaves that are siblings.
  private mutating func applyOneByOne(
    _ run: PageEntries, below parentByteCount: Int, _ note: Noting
  ) {
    let value = Value(nil, WriteFacts())
    let start = run.bytes.baseAddress.unsafelyUnwrapped
    for index in run.offsets.indices where failure == nil {
      let entry = start + Int(run.offsets[index])
      let (keyByteCount, prefix) = Varint.readTrusted(entry)
      let pathByteCount = parentByteCount + prefix + keyByteCount
      (path + parentByteCount).copyMemory(from: entry, byteCount: prefix + keyByteCount)
      var next = entry + prefix + keyByteCount
      change(
        .set, at: UnsafeRawBufferPointer(start: path, count: pathByteCount), &next, value, note)
    }
  }

  /// One entry of an update that is not in order.
  private struct Entry {
    let path: [UInt8]
    let kind: WriteKind
    let value: UnsafeRawPointer

    /// Entries go by their paths; of one path the priority comes last.
    static func precedes(_ a: Entry, _ b: Entry) -> Bool {
      a.path.withUnsafeBytes { x in
        b.path.withUnsafeBytes { y in
          if Path.storedBytes(x, precede: y) { return true }
          return a.path == b.path && a.kind != .setPriority && b.kind == .setPriority
        }
      }
    }
  }

  private mutating func applySorted(_ write: WriteView, _ note: Noting) {
    let value = Value(write.owner, write.facts)
    var list: [Entry] = []
    list.reserveCapacity(write.facts.entryCount)
    var entries = EntryReader(write.body, path: path, baseByteCount: write.path.count)
    while entries.advance() {
      list.append(Entry(path: Array(entries.wholePath), kind: entries.kind, value: entries.next))
      entries.skipValue()
    }
    // Stable, as `sort` is: of the same path twice, the later one holds.
    list.sort(by: Entry.precedes)
    for pass in [false, true] {
      for entry in list where (entry.kind == .setPriority) == pass && failure == nil {
        entry.path.withUnsafeBytes { path in
          var next = entry.value
          forget()
          change(entry.kind, at: path, &next, value, note)
        }
      }
    }
  }

  // MARK: One change

  /// Makes one change, whose value begins at `next`, and moves `next` to its end.
  @inline(__always)
  private mutating func change(
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

  /// Edits a short leaf in one descent, from the last place where that is near.
  ///
  /// - Returns: false where there is more to it; nothing was done then.
  @inline(__always)
  private mutating func exchange(
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

  /// The last key of a path, if all before it lead to the branch that is remembered.
  @inline(__always)
  private func siblingStep(_ start: UnsafeRawPointer, end: UnsafeRawPointer) -> PathStep? {
    guard branchByteCount < end - start else { return nil }
    let step = PathStep(start + branchByteCount, end: end)
    return step.hasRest ? nil : step
  }

  /// Remembers where a change was made in place.
  @inline(__always)
  private mutating func remember(_ place: Pages.Place, in start: UnsafeRawPointer) {
    guard let slot = place.branch, let key = place.key, key > start else { return forget() }
    branch = slot
    branchByteCount = key - start
  }

  /// Forgets the place unless a path leads through the branch, and takes the path over.
  private mutating func recall(for new: UnsafeRawBufferPointer) {
    guard let start = new.baseAddress else { return forget() }
    if branch != nil,
      new.count < branchByteCount
        || compareBytes(path, branchByteCount, start, branchByteCount) != 0
    {
      forget()
    }
    path.copyMemory(from: start, byteCount: new.count)
  }

  // MARK: Any change

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

  /// Whether two nodes differ; false where a page of the first one could not be read.
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

  /// Puts the root page back into the tree.
  @inline(__always)
  private mutating func putBack() {
    guard let taken = page.take() else { return }
    tree.content = .page(taken)
  }
}

extension Node {
  /// The node at a stored path.
  func node(atStored path: UnsafeRawBufferPointer) -> Node {
    if path.isEmpty { return self }
    guard let page = branch else { return .empty }
    return withExtendedLifetime(page) { Pages.node(page.access, PathStep(stored: path)) }
  }

  /// What a change at a path has to know about the tree.
  fileprivate struct Lookup {
    /// The node at the path.
    var existing = Node.empty
    /// The bytes of the path that lead to the leaf above it, if there is one.
    var leafByteCount: Int?
    /// The bytes of the path that lead to the highest node that is removed together with the node at the path.
    var prunedByteCount = 0
  }

  fileprivate func lookUp(_ path: UnsafeRawBufferPointer) -> Lookup {
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
  fileprivate mutating func descend(_ root: PageAccess, _ path: PathStep, _ start: UnsafeRawPointer)
  {
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
