extension Node {
  /// Sets a leaf from the bytes of a log, without decoding them into a `Path` and a `Scalar`. The effect is
  /// that of `apply(.set(path, leaf))`, but no change is reported.
  ///
  /// - Parameters:
  ///   - path: the stored form of a path of at most `Limits.depth` keys.
  ///   - leaf: one valid packed leaf.
  ///   - cursor: of these edits.
  /// - Throws: why a page on the way could not be read; the tree is unchanged then.
  /// - Complexity: O(depth · log children).
  package mutating func loadAndSet(
    storedPath path: UnsafeRawBufferPointer, packedLeaf leaf: UnsafeRawBufferPointer,
    _ cursor: inout LeafCursor
  ) throws(PageFailure) {
    if leaf.first != PackedScalar.priorityTag,
      try loadAndExchange(.set(leaf), at: path, &cursor) != .declined
    {
      return
    }
    cursor.forget()
    try load(along: path)
    assign(.packed(leaf), at: path)
  }

  /// `exchange`, after the pages on the way have been read. It says nothing of what was replaced.
  package mutating func loadAndExchange(
    _ edit: LeafEdit, at storedPath: UnsafeRawBufferPointer, _ cursor: inout LeafCursor
  ) throws(PageFailure) -> LeafEdit.Outcome {
    while true {
      let outcome = exchange(edit, at: storedPath, &cursor) { _ in }
      guard outcome == .unloaded else { return outcome }
      cursor.forget()
      try load(along: storedPath)
    }
  }

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
