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

  /// Calls `body` with the stored path and the packed form of each leaf and of each branch that has a
  /// priority, in the order of paths, a branch before its children. The packed form of such a branch is
  /// `30` and the packed priority, without a scalar.
  ///
  /// The bytes are valid only during the call. Checkpoints are written with this method.
  ///
  /// - Complexity: O(nodes).
  package func forEachStored<E: Error>(
    _ body: (_ storedPath: UnsafeRawBufferPointer, _ packed: UnsafeRawBufferPointer) throws(E) ->
      Void
  ) throws(E) {
    var path: [UInt8] = []
    try forEachStored(&path, body)
  }

  private func forEachStored<E: Error>(
    _ path: inout [UInt8],
    _ body: (_ storedPath: UnsafeRawBufferPointer, _ packed: UnsafeRawBufferPointer) throws(E) ->
      Void
  ) throws(E) {
    guard let page = branch else {
      guard let byteCount = packedLeafByteCount else { return }
      let packed = [UInt8](unsafeUninitializedCapacity: byteCount) { target, count in
        writePackedLeaf(to: UnsafeMutableRawPointer(target.baseAddress.unsafelyUnwrapped))
        count = byteCount
      }
      return try Node.call(body, path, packed)
    }
    if let priority {
      var packed = [PackedScalar.priorityTag]
      PackedScalar.append(priority, to: &packed)
      try Node.call(body, path, packed)
    }
    try Node.forEachStored(page.access, &path, body)
    withExtendedLifetime(page) {}
  }

  private static func call<E: Error>(
    _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(E) -> Void, _ path: [UInt8],
    _ packed: [UInt8]
  ) throws(E) {
    let result: Result<Void, E> = path.withUnsafeBytes { path in
      packed.withUnsafeBytes { packed in Result { () throws(E) in try body(path, packed) } }
    }
    try result.get()
  }

  private static func forEachStored<E: Error>(
    _ page: PageAccess, _ path: inout [UInt8],
    _ body: (_ storedPath: UnsafeRawBufferPointer, _ packed: UnsafeRawBufferPointer) throws(E) ->
      Void
  ) throws(E) {
    for index in 0..<page.count {
      if page.kind == .inner {
        try forEachStored(PageAccess(page.reference(index)), &path, body)
        continue
      }
      let before = path.count
      // An entry begins with the same bytes as a component of a stored path: the length of the key, then
      // the key.
      path.append(
        contentsOf: UnsafeRawBufferPointer(
          start: page.tail + page.offset(index),
          count: page.valueStart(index) - UnsafeRawPointer(page.tail + page.offset(index))))
      if page.hasReferences, page.reference(index).pointee != nil {
        try page.node(index).forEachStored(&path, body)
      } else {
        let packed = UnsafeRawBufferPointer(page.value(index))
        let result: Result<Void, E> = path.withUnsafeBytes { path in
          Result { () throws(E) in try body(path, packed) }
        }
        try result.get()
      }
      path.removeLast(path.count - before)
    }
  }
}
