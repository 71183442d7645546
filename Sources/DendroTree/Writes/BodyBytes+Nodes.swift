extension BodyBytes {
  /// Makes the node whose bytes begin at `next`, and moves `next` to their end.
  ///
  /// - Parameter hasOrderedChildren: whether all children come in the order of their keys.
  static func node(
    _ next: inout UnsafeRawPointer, _ trees: [Node], hasOrderedChildren: Bool
  ) -> Node {
    let tag = next.load(as: UInt8.self)
    switch tag {
    case BodyTag.empty:
      next += 1
      return .empty
    case BodyTag.tree:
      let (index, byteCount) = Varint.readTrusted(next + 1)
      next += 1 + byteCount
      precondition(index < trees.count, "a body refers to trees of its write")
      return trees[index]
    case BodyTag.branch:
      next += 1
      return branch(&next, priority: nil, trees, hasOrderedChildren)
    case BodyTag.branchWithPriority:
      let (priority, byteCount) = PackedScalar.readTrusted(next + 1)
      next += 1 + byteCount
      return branch(&next, priority: priority, trees, hasOrderedChildren)
    default:
      let leaf = next
      next = nodeEnd(leaf)
      return Pages.leaf(leaf)
    }
  }

  private static func branch(
    _ next: inout UnsafeRawPointer, priority: Scalar?, _ trees: [Node],
    _ hasOrderedChildren: Bool
  ) -> Node {
    if hasOrderedChildren, let page = page(&next) {
      return Node(content: .page(page), priority: priority)
    }
    let (count, prefix) = Varint.readTrusted(next)
    next += prefix
    var builder = NodeBuilder()
    for _ in 0..<count {
      let (keyByteCount, prefix) = Varint.readTrusted(next)
      let key = UnsafeRawBufferPointer(start: next + prefix, count: keyByteCount)
      next += prefix + keyByteCount
      let leafByteCount = shortLeafByteCount(next)
      if leafByteCount > 0 {
        let leaf = UnsafeRawBufferPointer(start: next, count: leafByteCount)
        builder.append(orderedBytes: key, .packed(leaf))
        next += leafByteCount
      } else {
        builder.append(
          orderedBytes: key, .node(node(&next, trees, hasOrderedChildren: hasOrderedChildren)))
      }
    }
    return builder.finish(priority: priority)
  }

  /// The most entries of a page that is made by one copy. The offsets of more are not kept on the stack.
  private static let copiedCountMax = 128

  /// Makes the page of a branch whose children are few short leaves without priorities: they lie in the body as they do
  /// in a page.
  ///
  /// - Parameter next: at the count of children; moved to their end.
  /// - Returns: nil for any other branch; `next` is where it was then.
  static func page(_ next: inout UnsafeRawPointer) -> Page? {
    let (count, prefix) = Varint.readTrusted(next)
    guard count <= copiedCountMax else { return nil }
    let start = next + prefix
    return withUnsafeTemporaryAllocation(of: UInt16.self, capacity: copiedCountMax) { offsets in
      var end = start
      for index in 0..<count {
        let offset = end - start
        guard offset <= Page.plainByteCountMax else { return nil }
        offsets[index] = UInt16(truncatingIfNeeded: offset)
        let (keyByteCount, prefix) = Varint.readTrusted(end)
        end += prefix + keyByteCount
        let leafByteCount = shortLeafByteCount(end)
        guard leafByteCount > 0 else { return nil }
        end += leafByteCount
      }
      let byteCount = end - start
      guard byteCount + 2 * count <= Page.plainByteCountMax else { return nil }
      next = end
      return Page.copying(
        PageEntries(
          bytes: UnsafeRawBufferPointer(start: start, count: byteCount),
          offsets: UnsafeBufferPointer(rebasing: offsets[..<count])))
    }
  }
}

/// The entries of a leaf page without references: keys and short leaves without priorities, in the order of keys.
///
/// Unsafe: valid as long as its maker keeps the memory.
struct PageEntries {
  let bytes: UnsafeRawBufferPointer
  /// Where each entry begins.
  let offsets: UnsafeBufferPointer<UInt16>
}

extension Page {
  /// Makes a leaf page without references from its entries.
  static func copying(_ source: PageEntries) -> Page {
    let (entries, offsets) = (source.bytes, source.offsets)
    let page = Page.make(
      .leaf, hasReferences: false, capacity: entries.count + 2 * offsets.count)
    let access = page.access
    access.header.pointee.count = UInt16(truncatingIfNeeded: offsets.count)
    access.header.pointee.used = UInt32(truncatingIfNeeded: entries.count)
    access.header.pointee.total = UInt32(truncatingIfNeeded: offsets.count)
    access.tail.copyMemory(
      from: entries.baseAddress.unsafelyUnwrapped, byteCount: entries.count)
    for index in offsets.indices { access.setOffset(index, Int(offsets[index])) }
    return page
  }
}
