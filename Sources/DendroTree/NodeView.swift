/// A node that is read in place: no reference is counted, and nothing is decoded but what is asked for.
///
/// It refers to the pages of a tree without keeping them alive, as `PageAccess` does: it may be used within
/// the call of `Node.withView` alone, which keeps the tree. The API lends it in a type that cannot be copied.
package struct NodeView {
  private enum Content {
    case empty
    case branch(PageAccess)
    /// The bytes of a leaf after its priority.
    case packed(UnsafeRawPointer)
    /// A leaf that is in no page. By its address, so that a view is plain bytes: the copies of what may have a
    /// reference would cost more than a descent by one level.
    case scalar(UnsafePointer<Scalar>)
  }

  private let content: Content

  /// - Parameter page: of a branch or a box.
  fileprivate init(_ page: Page) {
    content = page.kind == .box ? Self.boxed(page.access) : .branch(page.access)
  }

  fileprivate init(_ scalar: UnsafePointer<Scalar>) { content = .scalar(scalar) }

  /// Nothing.
  fileprivate init() { content = .empty }

  init(branch page: PageAccess) { content = .branch(page) }

  /// A leaf without a priority, whose packed scalar stands in memory that outlives the view.
  init(packedLeaf scalar: UnsafeRawPointer) { content = .packed(scalar) }

  /// An entry of a leaf page.
  @inline(__always)
  private init(_ page: PageAccess, _ index: Int) { self.init(page, index, page.valueStart(index)) }

  /// - Parameter value: where the value of the entry begins.
  @inline(__always)
  private init(_ page: PageAccess, _ index: Int, _ value: UnsafeRawPointer) {
    let address = Self.afterPriority(value)
    guard address.load(as: UInt8.self) == Pages.referenceTag else {
      content = .packed(address)
      return
    }
    let child = PageAccess(lookingUpIn: page.reference(index))
    content = child.kind == .box ? Self.boxed(child) : .branch(child)
  }

  private init(_ content: Content) { self.content = content }

  private static func boxed(_ box: PageAccess) -> Content {
    let address = afterPriority(box.valueStart(0))
    return address.load(as: UInt8.self) == Pages.referenceTag
      ? .branch(PageAccess(box.reference(0))) : .packed(address)
  }

  @inline(__always)
  private static func afterPriority(_ address: UnsafeRawPointer) -> UnsafeRawPointer {
    guard address.load(as: UInt8.self) == PackedScalar.priorityTag else { return address }
    return address + 1 + PackedScalar.byteCountTrusted(address + 1)
  }

  // MARK: Content

  /// What is at a location without data.
  package static var nothing: NodeView { NodeView(Content.empty) }

  package var isEmpty: Bool { if case .empty = content { true } else { false } }

  /// The value of a leaf; nil for a branch and for nothing.
  package var scalar: Scalar? {
    switch content {
    case .empty, .branch: nil
    case .packed(let address): PackedScalar.readTrusted(address).scalar
    case .scalar(let scalar): scalar.pointee
    }
  }

  /// The value of a leaf, of which a string is not copied.
  package enum LeafView {
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    /// UTF-8, valid as long as the view.
    case string(UnsafeRawBufferPointer)
    /// A string, if the leaf is in no page; valid as long as the view.
    case unpaged(UnsafePointer<Scalar>)
  }

  /// `scalar`, read in place; nil for bytes as well.
  package var leaf: LeafView? {
    switch content {
    case .empty, .branch: return nil
    case .packed(let address):
      switch PackedScalar.kind(address) {
      case .bool: return .bool(address.load(as: UInt8.self) == 1)
      case .number:
        switch PackedScalar.numberTrusted(address).number {
        case .integer(let value): return .integer(value)
        case .double(let value): return .double(value)
        }
      default: return PackedScalar.stringBytes(address).map { .string($0) }
      }
    case .scalar(let scalar):
      switch scalar.pointee {
      case .bool(let value): return .bool(value)
      case .integer(let value): return .integer(value)
      case .double(let value): return .double(value)
      case .string: return .unpaged(scalar)
      case .bytes: return nil
      }
    }
  }

  /// What is there, without making the scalar.
  package enum ContentKind {
    case nothing, bool, number, string, bytes, branch
  }

  package var contentKind: ContentKind {
    switch content {
    case .empty: .nothing
    case .branch: .branch
    case .packed(let address): PackedScalar.kind(address)
    case .scalar(let scalar):
      switch scalar.pointee {
      case .bool: .bool
      case .integer, .double: .number
      case .string: .string
      case .bytes: .bytes
      }
    }
  }

  /// `scalar?.string`, without making the scalar.
  package var string: String? {
    switch content {
    case .empty, .branch: return nil
    case .packed(let address):
      return PackedScalar.stringBytes(address).map { String(decoding: $0, as: UTF8.self) }
    case .scalar(let scalar):
      if case .string(let string) = scalar.pointee { return string }
      return nil
    }
  }

  package var childCount: Int { if case .branch(let page) = content { page.total } else { 0 } }

  // MARK: Below

  /// What is at a path below, which is parsed as `Path.init(parsing:)` does.
  ///
  /// - Throws: `ValidationError` of kind `.invalidPath`.
  package func view(parsing path: String) throws(ValidationError) -> NodeView {
    // Here and not in the API, so that the generic function is specialized.
    try Path.withStoredBytes(parsing: path) { stored, _ in view(at: stored) }
  }

  /// What is at a path below.
  ///
  /// - Parameter storedPath: as `Path.withStoredBytes(parsing:_:)` gives it.
  /// - Complexity: O(segments · log children).
  package func view(at storedPath: UnsafeRawBufferPointer) -> NodeView {
    guard let start = storedPath.baseAddress, !storedPath.isEmpty else { return self }
    return descend(PathStep(start, end: start + storedPath.count))
  }

  /// The child at a key.
  ///
  /// - Complexity: O(log children).
  package func child(_ key: Key) -> NodeView {
    key.withOrderedBytes { child(KeyView(orderedBytes: $0)) }
  }

  /// The child at a key.
  ///
  /// - Complexity: O(log children).
  package func child(_ key: KeyView) -> NodeView {
    let nothing = NodeView(Content.empty)
    guard case .branch(let page) = content,
      let entry = Pages.lookUp(page, key.start, key.count)
    else { return nothing }
    return NodeView(entry.page, entry.index, entry.value)
  }

  private func descend(_ path: PathStep) -> NodeView {
    let nothing = NodeView(Content.empty)
    guard case .branch(var page) = content else { return nothing }
    var step = path
    while true {
      guard let entry = Pages.lookUp(page, step.key, step.keyCount) else { return nothing }
      let child = NodeView(entry.page, entry.index, entry.value)
      if !step.hasRest { return child }
      guard case .branch(let below) = child.content else { return nothing }
      page = below
      step = step.next
    }
  }

  /// Calls `body` with each child in the order of keys, until it returns false.
  package func forEachChild<E: Error>(
    _ body: (KeyView, NodeView) throws(E) -> Bool
  ) throws(E) {
    guard case .branch(let page) = content else { return }
    _ = try Self.forEachChild(of: page, body)
  }

  private static func forEachChild<E: Error>(
    of page: PageAccess, _ body: (KeyView, NodeView) throws(E) -> Bool
  ) throws(E) -> Bool {
    if page.hasReferences { page.prefetchReferencedPages() }
    for index in 0..<page.count {
      let isWanted =
        page.kind == .inner
        ? try forEachChild(of: PageAccess(page.reference(index)), body)
        : try body(KeyView(page.key(index)), NodeView(page, index))
      if !isWanted { return false }
    }
    return true
  }
}

extension Node {
  /// Calls `body` with this node, to be read in place.
  package func withView<R, E: Error>(
    _ body: (NodeView) throws(E) -> R
  ) throws(E) -> R {
    defer { withExtendedLifetime(content) {} }
    return switch content {
    case .empty: try body(NodeView())
    case .page(let page): try body(NodeView(page))
    case .scalar(let scalar):
      try withUnsafePointer(to: scalar) { (scalar) throws(E) in try body(NodeView(scalar)) }
    }
  }
}
