import DendroTree

/// The tree with every admitted write, guarded by the admission lock.
///
/// Between changes the readers may look at it without that lock (`HeadReaders`). So each change is made
/// between `beginChange` and `endChange`.
struct Head: ~Copyable {
  private var editor: TreeEditor
  /// Where pages of the tree are read from that are still in a checkpoint; nil where all are in memory.
  private(set) var pages: CheckpointPages?
  private let readers: HeadReaders
  /// Earlier trees that were read when they changed: a second reference to them makes writes copy the pages that the
  /// readers see.
  private var retired: [Node] = []
  private var isChanging = false

  init(_ root: Node, _ pages: CheckpointPages?, _ readers: HeadReaders) {
    editor = TreeEditor(root, remembersPlace: false)
    self.pages = pages
    self.readers = readers
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

  /// Takes the tree back from new readers, and keeps it as it is for those who read it now.
  @inline(__always)
  mutating func beginChange() {
    assert(!isChanging)
    isChanging = true
    // While pages are partial nothing is published, but this tree may have been, earlier.
    guard let address = readers.withdraw() ?? editor.rootAddress else { return }
    assert(address == editor.rootAddress, "what was published is this tree")
    if readers.areReading(address) { retire(address) }
  }

  @inline(never)
  private mutating func retire(_ address: BranchAddress) {
    retired.append(editor.root)
    readers.hasRetired = true
    // A reader that has ended or given up before it could see that something is retired frees nothing.
    if !readers.areReading(address) { releaseLastRetired() }
  }

  /// Lends the tree to readers again. They may see a write before it has its number and before the observer was
  /// called; who needs these in step takes the lock.
  @inline(__always)
  mutating func endChange() {
    assert(isChanging)
    isChanging = false
    // What has not changed, or was changed back, is not retired.
    if !retired.isEmpty { forgetRetired(editor.rootAddress) }
    publish()
  }

  /// Replaces the tree by another one.
  mutating func replace(by root: Node, pages: CheckpointPages?) {
    beginChange()
    editor.replace(by: root)
    self.pages = pages
    endChange()
  }

  /// Lends the tree to readers, unless pages may have to be read first.
  @inline(__always)
  func publish() {
    if let pages, pages.isPartial { return }
    readers.publish(editor.rootAddress)
  }

  private mutating func releaseLastRetired() {
    retired.removeLast()
    readers.hasRetired = !retired.isEmpty
  }

  @inline(never)
  private mutating func forgetRetired(_ address: BranchAddress?) {
    retired.removeAll { BranchAddress(of: $0) == address }
    readers.hasRetired = !retired.isEmpty
  }

  /// Takes out the retired trees that are not read any more. The caller frees them without the lock.
  mutating func takeUnread() -> [Node] {
    var unread: [Node] = []
    var read: [Node] = []
    for node in retired {
      if let address = BranchAddress(of: node), readers.areReading(address) {
        read.append(node)
      } else {
        unread.append(node)
      }
    }
    retired = read
    readers.hasRetired = !retired.isEmpty
    return unread
  }
}
