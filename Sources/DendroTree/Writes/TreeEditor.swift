/// Owns a tree, and is the one way in which it changes: by live writes, in replay, in followers, for previews.
///
/// Between two writes it may remember where the last one ended, so that a write of a sibling need not go down from
/// the root. That place is a slot in a page. It stays right as long as nothing but this editor changes pages of the
/// tree, and nothing else has got a reference to one of them. Leaves of a place that is not known may wait for their
/// siblings besides (`LeafRun`). So the tree can be taken only once the editor has settled (`settle`), and an editor
/// whose tree others may read between two writes does not remember (`remembersPlace`).
package struct TreeEditor: ~Copyable {
  /// Empty while a change is made whose root page is in `page`.
  var tree: Node
  /// The root page of the tree, taken out of it for the time of a change: the only reference to it.
  var page: Page?
  /// The stored path of the last change; memory for `EntryReader.pathByteCountMax` bytes.
  let path: UnsafeMutableRawPointer
  /// The slot of the root page of the branch in which the last change was, while it is known.
  private(set) var branch: UnsafeMutablePointer<Page?>?
  /// The bytes of `path` that lead to that branch.
  private(set) var branchByteCount = 0
  /// Leaves that are not in the tree yet.
  var run = LeafRun()
  private let remembersPlace: Bool
  let loadsPages: Bool
  /// Why a page could not be read: nothing more is changed then.
  var failure: PageFailure?
  /// The entries of the write that remove something.
  var removalCount = 0

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
  ///     them without `settle()`.
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
    settle()
    var tree = Node.empty
    swap(&tree, &self.tree)
    return tree
  }

  /// The tree. Not before the editor has settled.
  @inline(__always)
  package var root: Node {
    precondition(
      branch == nil && run.isEmpty, "an editor has settled before its tree is taken")
    return tree
  }

  /// The address of the root page, of which no reference is counted.
  @inline(__always)
  package var rootAddress: BranchAddress? { BranchAddress(of: tree) }

  /// Replaces the tree.
  package mutating func replace(by tree: Node) {
    settle()
    self.tree = tree
  }

  /// Puts into the tree what waits for siblings, and forgets where the last change was.
  @inline(__always)
  package mutating func settle() {
    if !run.isEmpty { finishRun() }
    forget()
  }

  /// Forgets where the last change was.
  @inline(__always)
  mutating func forget() { branch = nil }

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
  ///   - note: called for each change with what it replaces, before or after it is made; if the editor remembers its
  ///     place, perhaps not until a later write is applied.
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
  mutating func applySingle(
    _ kind: WriteKind, _ path: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer,
    _ facts: WriteFacts, _ owner: Unmanaged<EncodedWrite>?, isKnownToDiffer: Bool, _ note: Noting
  ) {
    precondition(!facts.hasServerValues, Self.unresolved)
    precondition(path.count <= EntryReader.pathByteCountMax, Self.tooLong)
    removalCount = facts.removalCount
    var next = body.baseAddress ?? UnsafeRawPointer(self.path)
    if !run.isEmpty, kind == .set, addToRun(path, next) { return }
    page = tree.takeBranch()
    defer { putBack() }
    let value = Value(owner, facts, isKnownToDiffer)
    if remembersPlace {
      finishRun(note)
      recall(for: path)
      let own = UnsafeRawBufferPointer(start: self.path, count: path.count)
      if kind == .set, let parentByteCount = runParentByteCount(of: own),
        beginRun(own, below: parentByteCount, next)
      {
        return
      }
      change(kind, at: own, &next, value, note)
    } else {
      change(kind, at: path, &next, value, note)
      forget()
    }
  }

  static var unresolved: String { "server values are resolved before a write is applied" }
  static var tooLong: String { "a path has \(Limits.depth) keys at most" }

  /// Applies a write as the method above does, and reads the pages that it needs if they are in a file.
  ///
  /// - Throws: why a page could not be read. The tree may have a part of the write then.
  package mutating func applyLoading(_ write: WriteView) throws(PageFailure) {
    apply(write) { _, _ in }
    if let failure { throw failure }
  }

  /// Settles, and reads the pages that this needs.
  ///
  /// - Throws: as `applyLoading`, which did not need them yet.
  package mutating func settleLoading() throws(PageFailure) {
    settle()
    if let failure { throw failure }
  }

  /// Puts a node to a path, for example to undo a change.
  ///
  /// - Complexity: O(depth · log children).
  package mutating func graft(_ node: Node, at path: Path) {
    settle()
    tree.graft(node, at: path)
  }

  /// How the value of a write is read.
  struct Value {
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

  // MARK: The place

  /// The last key of a path, if all before it lead to the branch that is remembered.
  @inline(__always)
  func siblingStep(_ start: UnsafeRawPointer, end: UnsafeRawPointer) -> PathStep? {
    guard branchByteCount < end - start else { return nil }
    let step = PathStep(start + branchByteCount, end: end)
    return step.hasRest ? nil : step
  }

  /// Remembers where a change was made in place.
  @inline(__always)
  mutating func remember(_ place: Pages.Place, in start: UnsafeRawPointer) {
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

  /// Puts the root page back into the tree.
  @inline(__always)
  mutating func putBack() {
    guard let taken = page.take() else { return }
    tree.content = .page(taken)
  }
}
