extension Node {
  /// Sets a leaf from the bytes of a log, without decoding them into a `Path` and a `Scalar`. The effect is
  /// that of `apply(.set(path, leaf))`, but no change is reported.
  ///
  /// - Returns: false if the bytes are not a stored path of at most `Limits.depth` keys and one packed
  ///   leaf; the tree is unchanged then.
  /// - Throws: why a page on the way could not be read; the tree is unchanged then.
  /// - Complexity: O(depth · log children).
  package mutating func loadAndSet(
    storedPath path: [UInt8], packedLeaf leaf: UnsafeRawBufferPointer
  ) throws(PageFailure) -> Bool {
    let count = path.withUnsafeBytes { Path.keyCount(validating: $0) }
    guard let count, count <= Limits.depth,
      PackedScalar.leafEnd(validating: leaf, at: 0) == leaf.count
    else { return false }
    if leaf.first != PackedScalar.priorityTag,
      try loadAndExchange(.set(leaf), at: path) != .declined
    {
      return true
    }
    try load(along: path)
    path.withUnsafeBytes { assign(.packed(leaf), at: $0) }
    return true
  }

  /// `exchange`, after the pages on the way have been read. It says nothing of what was replaced.
  package mutating func loadAndExchange(
    _ edit: LeafEdit, at storedPath: [UInt8]
  ) throws(PageFailure) -> LeafEdit.Outcome {
    while true {
      let outcome = storedPath.withUnsafeBytes { exchange(edit, at: $0) { _ in } }
      guard outcome == .unloaded else { return outcome }
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
