/// The value of an entry in the form in which it is written into a page: at most
/// `Page.inlineValueByteCountMax` bytes and an optional reference.
struct PageValue {
  private enum Bytes {
    case scalar(Scalar, priority: Scalar?)
    case packed(UnsafeRawBufferPointer)
    case reference(priority: Scalar?)
  }

  private let bytes: Bytes
  let byteCount: Int
  let reference: Page?
  /// Whether the child has a priority, in these bytes or in the box.
  let hasPriority: Bool

  /// Makes the value of a non-empty node. A value that is too long is put into a box.
  init(_ new: borrowing AssignedValue) {
    switch new {
    case .packed(let packed):
      self.init(
        .packed(packed), packed.count, nil, hasPriority: packed.first == PackedScalar.priorityTag)
    case .node(let node):
      switch node.content {
      case .scalar(let scalar):
        self.init(
          .scalar(scalar, priority: node.ownPriority),
          PackedScalar.leafByteCount(scalar, priority: node.ownPriority), nil,
          hasPriority: node.ownPriority != nil)
      case .page(let page):
        // The box of a leaf includes the priority.
        let priority = page.kind == .box ? nil : node.ownPriority
        self.init(
          .reference(priority: priority),
          1 + (priority.map { 1 + PackedScalar.byteCount($0) } ?? 0), page,
          hasPriority: node.ownPriority != nil)
      case .empty:
        preconditionFailure("an empty node is never stored")
      }
    }
  }

  private init(_ bytes: Bytes, _ byteCount: Int, _ reference: Page?, hasPriority: Bool) {
    self.hasPriority = hasPriority
    if byteCount <= Page.inlineValueByteCountMax {
      self.bytes = bytes
      self.byteCount = byteCount
      self.reference = reference
      return
    }
    let box = Page.make(.box, hasReferences: reference != nil, capacity: byteCount + 1 + 16)
    let target = withUnsafeBytes(of: UInt8(0)) { none in
      box.access.insert(
        at: 0, none.baseAddress.unsafelyUnwrapped, 0, valueCount: byteCount, reference)
    }
    PageValue.write(bytes, to: target)
    self.bytes = .reference(priority: nil)
    self.byteCount = 1
    self.reference = box
  }

  @inline(__always)
  func write(to target: UnsafeMutableRawPointer) { PageValue.write(bytes, to: target) }

  private static func write(_ bytes: Bytes, to target: UnsafeMutableRawPointer) {
    switch bytes {
    case .scalar(let scalar, let priority):
      _ = PackedScalar.writeLeaf(scalar, priority: priority, to: target)
    case .packed(let packed):
      if let source = packed.baseAddress {
        target.copyMemory(from: source, byteCount: packed.count)
      }
    case .reference(let priority):
      var next = target
      if let priority {
        next.storeBytes(of: PackedScalar.priorityTag, as: UInt8.self)
        next = PackedScalar.write(priority, to: next + 1)
      }
      next.storeBytes(of: Pages.referenceTag, as: UInt8.self)
    }
  }
}

extension Pages {
  /// Decodes a valid packed leaf.
  static func leaf(_ address: UnsafeRawPointer) -> Node {
    var next = address
    let priority = readPriority(&next)
    return Node(content: .scalar(PackedScalar.readTrusted(next).scalar), priority: priority)
  }

  @inline(__always)
  static func readPriority(_ address: inout UnsafeRawPointer) -> Scalar? {
    guard address.load(as: UInt8.self) == PackedScalar.priorityTag else { return nil }
    let (priority, byteCount) = PackedScalar.readTrusted(address + 1)
    address += 1 + byteCount
    return priority
  }

  /// The first tag of a value after its priority, if it has one.
  @inline(__always)
  static func tag(_ address: UnsafeRawPointer) -> UInt8 {
    let tag = address.load(as: UInt8.self)
    if tag != PackedScalar.priorityTag { return tag }
    return (address + 1 + PackedScalar.byteCountTrusted(address + 1)).load(as: UInt8.self)
  }
}

extension PageAccess {
  /// The address of an entry's value.
  @inline(__always)
  func valueStart(_ index: Int) -> UnsafeRawPointer {
    let key = key(index)
    return key.start + key.count
  }

  /// The reference to the root page of a branch in an entry of a leaf page; nil for leaves, and for
  /// branches whose priority is in a box.
  @inline(__always)
  func branchReference(_ index: Int) -> UnsafeMutablePointer<Page?>? {
    guard hasReferences, Pages.tag(valueStart(index)) == Pages.referenceTag else { return nil }
    let reference = reference(index)
    return PageAccess(unresolved: reference).resolvedKind == .box ? nil : reference
  }

  /// The node in an entry of a leaf page.
  func node(_ index: Int) -> Node {
    var address = valueStart(index)
    let priority = Pages.readPriority(&address)
    guard address.load(as: UInt8.self) == Pages.referenceTag else {
      return Node(
        content: .scalar(PackedScalar.readTrusted(address).scalar), priority: priority)
    }
    guard let page = reference(index).pointee else {
      preconditionFailure("an entry has the tag of a reference and no reference")
    }
    return page.kind == .box
      ? page.unboxed : Node(content: .page(page), priority: priority)
  }
}

extension Page {
  /// The node in a box.
  var unboxed: Node {
    withExtendedLifetime(self) {
      let access = access
      var address = access.valueStart(0)
      let priority = Pages.readPriority(&address)
      guard address.load(as: UInt8.self) == Pages.referenceTag else {
        // `scalar` decodes the long leaf on demand.
        return Node(content: .page(self), priority: priority)
      }
      guard let page = access.reference(0).pointee else {
        preconditionFailure("a box has the tag of a reference and no reference")
      }
      return Node(content: .page(page), priority: priority)
    }
  }

  /// The UTF-8 of the string in the box of a leaf; nil for other scalars.
  func withBoxedString<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R? {
    withExtendedLifetime(self) {
      var address = access.valueStart(0)
      _ = Pages.readPriority(&address)
      return PackedScalar.stringBytes(address).map(body)
    }
  }

  /// The scalar in the box of a leaf.
  var boxedScalar: Scalar {
    withExtendedLifetime(self) {
      var address = access.valueStart(0)
      _ = Pages.readPriority(&address)
      return PackedScalar.readTrusted(address).scalar
    }
  }
}
