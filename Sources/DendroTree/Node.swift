/// A tree: the empty node, a leaf, or a branch with ordered children; leaves and branches may have a
/// priority.
///
/// A node is a persistent value. A copy is O(1) and shares all pages; a change copies only shared pages
/// on the path to it, each of them once (<doc:Tree>). A branch has at least one child, and no child is
/// empty. Nodes may be read and copied on any thread, but two threads must not change one variable at
/// once.
///
/// Functions that walk a tree recurse as deep as the tree is. `Write.validate()` limits the depth to
/// `Limits.depth`.
package struct Node: Sendable {
  /// Unchecked: see `Page`.
  enum Content: @unchecked Sendable {
    case empty
    case scalar(Scalar)
    /// The root page of a branch, or the box of a leaf that is too long for a page.
    case page(Page)
  }

  var content: Content
  var ownPriority: Scalar?

  init(content: Content, priority: Scalar?) {
    self.content = content
    ownPriority = priority
  }

  /// The node of a location without data.
  package static let empty = Node(content: .empty, priority: nil)

  package init(_ scalar: Scalar, priority: Scalar? = nil) {
    self.init(content: .scalar(scalar), priority: priority)
  }

  package var isEmpty: Bool { if case .empty = content { true } else { false } }

  package var isLeaf: Bool { !isEmpty && branch == nil }

  package var isBranch: Bool { branch != nil }

  /// The root page of a branch.
  @inline(__always)
  var branch: Page? {
    if case .page(let page) = content, page.kind != .box { page } else { nil }
  }

  /// The root page of a branch or its stub, without a reference: the caller keeps the node alive.
  @inline(__always)
  private var unretainedBranch: PageAccess? {
    guard case .page(let page) = content else { return nil }
    // Only what will be read is looked up if it is still in a file.
    return Unmanaged.passUnretained(page)._withUnsafeGuaranteedRef {
      $0.kind == .box ? nil : $0.unresolved
    }
  }

  /// The root page of a branch without a priority, which is in memory; nil for any other node.
  var plainBranch: Page? {
    guard ownPriority == nil, case .page(let page) = content,
      page.kind == .leaf || page.kind == .inner
    else { return nil }
    return page
  }

  /// Takes out the root page of a branch, and leaves the empty node, so that the result is the only reference
  /// that the node had to it. Returns nil, and leaves the node as it is, unless it is a branch.
  @inline(__always)
  mutating func takeBranch() -> Page? {
    var taken = Content.empty
    swap(&taken, &content)
    switch consume taken {
    case .page(let page):
      if page.kind != .box { return page }
      content = .page(page)
    case .scalar(let scalar): content = .scalar(scalar)
    case .empty: break
    }
    return nil
  }

  /// The value of a leaf; nil for other nodes.
  package var scalar: Scalar? {
    switch content {
    case .empty: nil
    case .scalar(let scalar): scalar
    case .page(let page): page.kind == .box ? page.boxedScalar : nil
    }
  }

  /// The priority, which is a number or a string; nil if the node has none.
  package var priority: Scalar? { ownPriority }

  /// The number of direct children.
  package var childCount: Int { branch?.total ?? 0 }

  /// The child at a key; the empty node if there is none.
  ///
  /// - Complexity: O(log children).
  package func child(_ key: Key) -> Node {
    guard let root = unretainedBranch else { return .empty }
    defer { withExtendedLifetime(content) {} }
    return key.withOrderedBytes { key in
      Pages.find(root.resolved, key.baseAddress.unsafelyUnwrapped, key.count)
        .map { $0.page.node($0.index) } ?? .empty
    }
  }

  /// The node at a path; the empty node if there is none.
  ///
  /// - Complexity: O(depth · log children).
  package func node(at path: Path) -> Node {
    if path.isRoot { return self }
    guard let root = unretainedBranch else { return .empty }
    defer { withExtendedLifetime(content) {} }
    return path.storedBytes.withUnsafeBytes { Pages.node(root.resolved, PathStep(stored: $0)) }
  }

  /// The node at a path, which is parsed as `Path.init(parsing:)` does; no path is made.
  ///
  /// - Throws: `ValidationError` of kind `.invalidPath`.
  /// - Complexity: O(depth · log children).
  package func node(parsing path: String) throws(ValidationError) -> Node {
    // A result of the closure would be copied on its way out, and the node on its way in.
    var found = Node.empty
    var isFoundHere = false
    let root = unretainedBranch
    try Path.withStoredBytes(parsing: path) { stored, _ in
      if stored.isEmpty {
        isFoundHere = true
      } else if let root {
        found = Pages.node(root.resolved, PathStep(stored: stored))
      }
    }
    withExtendedLifetime(content) {}
    return isFoundHere ? self : found
  }

  /// Returns the same node with another priority. The empty node never has a priority.
  package func settingPriority(_ priority: Scalar?) -> Node {
    switch content {
    case .empty: self
    case .page(let page) where page.kind == .box:
      Node(content: .scalar(page.boxedScalar), priority: priority)  // The box has the old priority.
    case .scalar, .page: Node(content: content, priority: priority)
    }
  }

  /// Whether both nodes share their storage, which implies that they are equal. A leaf outside of a page
  /// has no storage; two such leaves are identical if they are equal and of the same type.
  package func isIdentical(to other: Node) -> Bool {
    let isSame: Bool
    switch (content, other.content) {
    case (.page(let a), .page(let b)): isSame = a === b
    case (.empty, .empty): return true
    case (.scalar(.integer(let a)), .scalar(.integer(let b))): isSame = a == b
    case (.scalar(let a), .scalar(let b)): isSame = a == b && a.hasSameBits(as: b)
    default: return false
    }
    guard isSame, ownPriority == other.ownPriority else { return false }
    guard let priority = ownPriority, let otherPriority = other.ownPriority else { return true }
    return priority.hasSameBits(as: otherPriority)
  }
}

extension Node {
  /// Makes `new` the node at a path, by the table of assignments in <doc:DataModel>.
  mutating func assign(_ new: Node, at path: Path) {
    path.withStoredBytes { assign(.node(new), at: $0) }
  }

  mutating func assign(_ new: borrowing AssignedValue, at storedPath: UnsafeRawBufferPointer) {
    guard let start = storedPath.baseAddress, !storedPath.isEmpty else {
      self = new.node
      return
    }
    let step = PathStep(start, end: start + storedPath.count)
    let priority = ownPriority
    var root = takeBranch()
    if root != nil {
      Pages.assign(&root, step, new)
      self = root.map { Node(content: .page($0), priority: priority) } ?? .empty
    } else if !new.isEmpty {
      self = Node(content: .page(Pages.chain(step, new)), priority: priority)
    }
  }
}

extension Pages {
  /// Makes a branch whose only descendant at `step` is a non-empty node.
  static func chain(_ step: PathStep, _ new: borrowing AssignedValue) -> Page {
    if case .packed(let leaf) = copy new, !step.hasRest,
      leaf.count <= Page.inlineValueByteCountMax, leaf.first != PackedScalar.priorityTag
    {
      return only(leaf, step)
    }
    var slot: Page? = Page.make(.leaf, hasReferences: false, capacity: 8)
    assign(&slot, step, new)
    guard let page = slot else { preconditionFailure("a non-empty node makes a branch") }
    return page
  }

  /// Makes a page with a single child: a short leaf without a priority.
  private static func only(_ leaf: UnsafeRawBufferPointer, _ step: PathStep) -> Page {
    let byteCount = PageAccess.entryByteCount(keyCount: step.keyCount, valueCount: leaf.count)
    let page = Page.make(.leaf, hasReferences: false, capacity: byteCount + 2)
    page.access.insert(at: 0, step.key, step.keyCount, valueCount: leaf.count, nil)
      .copyMemory(from: leaf.baseAddress.unsafelyUnwrapped, byteCount: leaf.count)
    page.access.header.pointee.total = 1
    return page
  }

  /// The entry of a key in the branch with this root page.
  @inline(__always)
  static func find(
    _ root: PageAccess, _ key: UnsafeRawPointer, _ keyCount: Int
  ) -> (page: PageAccess, index: Int)? {
    lookUp(root, key, keyCount).map { ($0.page, $0.index) }
  }

  /// The entry of a key in the branch with this root page, and where its value begins.
  @inline(__always)
  static func lookUp(
    _ root: PageAccess, _ key: UnsafeRawPointer, _ keyCount: Int
  ) -> (page: PageAccess, index: Int, value: UnsafeRawPointer)? {
    var page = root
    while page.kind == .inner {
      page = PageAccess(lookingUpIn: page.reference(page.childIndex(key, keyCount)))
    }
    return page.lookUp(key, keyCount).map { (page, $0.index, $0.value) }
  }

  /// The node at a path below the branch with this root page.
  static func node(_ root: PageAccess, _ path: PathStep) -> Node {
    var page = root
    var step = path
    while true {
      guard let entry = lookUp(page, step.key, step.keyCount) else { return .empty }
      if !step.hasRest { return entry.page.node(entry.index) }
      guard tag(entry.value) == referenceTag else { return .empty }
      // At once: whether it is a box is a look into the page already.
      let child = PageAccess(lookingUpIn: entry.page.reference(entry.index))
      if child.kind != .box {
        page = child
        step = step.next
        continue
      }
      let boxed = entry.page.node(entry.index)
      guard let branch = boxed.branch else { return .empty }
      return withExtendedLifetime(branch) { node(branch.access, step.next) }
    }
  }
}
