import DendroTree

/// The tree with every admitted write, guarded by the admission lock.
///
/// Between changes the readers may look at it without that lock (`HeadReaders`). So each change is made
/// between `beginChange` and `endChange`.
struct Head: ~Copyable {
  private var editor: TreeEditor
  /// Where pages of the tree are read from that are still in a checkpoint; nil if all are in memory.
  private(set) var pages: CheckpointPages?
  private let readers: HeadReaders
  /// Whether readers see each change at once.
  private let isShown: Bool
  /// Nil between changes.
  private var ongoing: Change?

  private struct Change {
    /// The tree before it.
    let branch: BranchAddress?
    /// Whether that is kept for readers.
    let isKept: Bool
  }

  init(
    _ root: Node, _ pages: CheckpointPages?, _ readers: HeadReaders, isShown: Bool = true
  ) {
    editor = TreeEditor(root, remembersPlace: false)
    self.pages = pages
    self.readers = readers
    self.isShown = isShown
    publish()
  }

  var root: Node { editor.root }

  /// Applies a write without server values, whose pages are in memory.
  ///
  /// - Parameters:
  ///   - isKnownToDiffer: as for `TreeEditor.apply`.
  ///   - note: called with what each change replaces.
  @inline(__always)
  mutating func apply(
    _ write: WriteView, isKnownToDiffer: Bool = false, note: TreeEditor.Noting
  ) {
    beginChange()
    editor.apply(write, isKnownToDiffer: isKnownToDiffer, note: note)
    endChange()
  }

  /// Puts nodes to their places, the last one first.
  mutating func graft(_ nodes: [(path: Path, node: Node)]) {
    beginChange()
    for (path, node) in nodes.reversed() { editor.graft(node, at: path) }
    endChange()
  }

  /// Takes the tree back from new readers, and keeps it as it is for those who go on reading it.
  @inline(__always)
  mutating func beginChange() {
    assert(ongoing == nil)
    let branch = editor.rootAddress
    ongoing = Change(branch: branch, isKept: readers.withdraw(branch))
  }

  /// Lends the tree to readers again. They may see a write before it has its number and before the observer was
  /// called; who needs these in step takes the lock.
  @inline(__always)
  mutating func endChange() {
    guard let change = ongoing.take() else { preconditionFailure("a change ends that has begun") }
    // What has not changed, or was changed back, is not retired. A tree that was changed in place is not either.
    if let branch = editor.rootAddress, change.isKept || branch != change.branch,
      readers.hasRetired
    {
      readers.forget(branch)
    }
    publish()
  }

  /// Replaces the tree by another one.
  mutating func replace(by root: Node, pages: CheckpointPages?) {
    beginChange()
    editor.replace(by: root)
    self.pages = pages
    endChange()
  }

  /// Lends the tree to readers, unless pages may have to be read first, or they see another one.
  @inline(__always)
  func publish() {
    let isPartial = pages?.isPartial ?? false
    readers.publish(isShown && !isPartial ? editor.rootAddress : nil)
  }
}
