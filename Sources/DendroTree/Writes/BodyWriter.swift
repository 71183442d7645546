/// Writes the bytes of writes and nodes, as the log holds them.
public enum BodyWriter {
  /// Appends a packed scalar.
  package static func append(_ scalar: Scalar, to buffer: PayloadBuffer) {
    buffer.append(room: PackedScalar.byteCount(scalar)) { _ = PackedScalar.write(scalar, to: $0) }
  }

  /// Appends a node.
  ///
  /// - Complexity: O(size of the node).
  package static func append(_ node: Node, to buffer: PayloadBuffer) {
    if let count = node.packedLeafByteCount {
      return buffer.append(room: count) { node.writePackedLeaf(to: $0) }
    }
    if node.isEmpty { return buffer.append(BodyTag.empty) }
    if let priority = node.priority {
      buffer.append(BodyTag.branchWithPriority)
      append(priority, to: buffer)
    } else {
      buffer.append(BodyTag.branch)
    }
    buffer.appendVarint(node.childCount)
    // The children lie in a page as they do in the log.
    if node.withStoredLeaves({ buffer.append($0) }) { return }
    node.forEachChild { key, child in
      append(key, to: buffer)
      append(child, to: buffer)
    }
  }

  /// Appends the length of a key and its ordered bytes.
  static func append(_ key: Key, to buffer: PayloadBuffer) {
    key.withOrderedBytes { bytes in
      buffer.appendVarint(bytes.count)
      buffer.append(bytes)
    }
  }

  /// Appends the value of a change of a priority.
  package static func append(priority: Scalar?, to buffer: PayloadBuffer) {
    guard let priority else { return buffer.append(0) }
    buffer.append(1)
    append(priority, to: buffer)
  }

  /// Appends a path without the bytes at its beginning that it shares with the one before.
  @inlinable @inline(__always)
  public static func append(
    path: UnsafeRawBufferPointer, after previous: UnsafeRawBufferPointer,
    to buffer: PayloadBuffer
  ) {
    let shared = sharedByteCount(path, previous)
    buffer.appendVarint(shared)
    buffer.appendVarint(path.count - shared)
    buffer.append(UnsafeRawBufferPointer(rebasing: path[shared...]))
  }

  /// The number of bytes at the beginning of both.
  @usableFromInline
  package static func sharedByteCount(
    _ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer
  ) -> Int {
    let count = min(a.count, b.count)
    var i = 0
    while i &+ 8 <= count {
      let x = a.loadUnaligned(fromByteOffset: i, as: UInt64.self)
      let y = b.loadUnaligned(fromByteOffset: i, as: UInt64.self)
      if x != y {
        return i &+ (UInt64(littleEndian: x) ^ UInt64(littleEndian: y)).trailingZeroBitCount / 8
      }
      i &+= 8
    }
    while i < count, a[i] == b[i] { i &+= 1 }
    return i
  }
}
