extension Node {
  /// A leaf from its valid packed form.
  package init(packedLeaf leaf: UnsafeRawBufferPointer) {
    self = Pages.leaf(leaf.baseAddress.unsafelyUnwrapped)
  }

  /// The number of bytes of a packed leaf; nil for other nodes.
  package var packedLeafByteCount: Int? {
    switch content {
    case .empty: nil
    case .scalar(let scalar): PackedScalar.leafByteCount(scalar, priority: ownPriority)
    case .page(let page):
      page.kind == .box ? withExtendedLifetime(page) { page.access.value(0).count } : nil
    }
  }

  /// Writes the packed form of a leaf.
  ///
  /// - Parameter target: memory for `packedLeafByteCount` bytes.
  package func writePackedLeaf(to target: UnsafeMutableRawPointer) {
    switch content {
    case .empty: break
    case .scalar(let scalar):
      _ = PackedScalar.writeLeaf(scalar, priority: ownPriority, to: target)
    case .page(let page):
      // The box of a leaf has its packed form, including the priority.
      withExtendedLifetime(page) {
        let packed = page.access.value(0)
        target.copyMemory(from: packed.baseAddress.unsafelyUnwrapped, byteCount: packed.count)
      }
    }
  }
}
