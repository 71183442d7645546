/// Hashes a sequence of bytes. The result must not depend on how the bytes are divided into calls.
package protocol ContentHasher {
  mutating func combine(_ bytes: UnsafeRawBufferPointer)
}

extension Node {
  /// Feeds a hasher with bytes that depend on the content alone.
  ///
  /// Equal trees give equal bytes, on any machine and in any version: 1 and 1.0 give the same bytes, and
  /// so do 0 and -0.0. Priorities are included.
  ///
  /// | node | bytes |
  /// | --- | --- |
  /// | empty | 00 |
  /// | with a priority | 30, the packed priority, the node without its priority |
  /// | leaf | 01, the packed scalar; a double that equals a 64-bit integer is packed as the integer |
  /// | branch | 02, the number of children (8 bytes, little-endian), then each child: the length of its key's ordered bytes (2 bytes, little-endian), these bytes, the node |
  ///
  /// - Complexity: O(bytes).
  package func contentHash(using hasher: inout some ContentHasher) {
    var buffer: [UInt8] = []
    buffer.reserveCapacity(5_000)
    appendContent(to: &buffer, draining: &hasher)
    buffer.withUnsafeBytes { hasher.combine($0) }
  }

  private func appendContent(to buffer: inout [UInt8], draining hasher: inout some ContentHasher) {
    if buffer.count >= 4_096 {
      buffer.withUnsafeBytes { hasher.combine($0) }
      buffer.removeAll(keepingCapacity: true)
    }
    if let priority {
      buffer.append(PackedScalar.priorityTag)
      PackedScalar.append(priority.hashed, to: &buffer)
    }
    if let scalar {
      buffer.append(1)
      PackedScalar.append(scalar.hashed, to: &buffer)
    } else if isEmpty {
      buffer.append(0)
    } else {
      buffer.append(2)
      withUnsafeBytes(of: UInt64(childCount).littleEndian) { buffer.append(contentsOf: $0) }
      forEachChild { key, child in
        withUnsafeBytes(of: UInt16(key.orderedByteCount).littleEndian) {
          buffer.append(contentsOf: $0)
        }
        key.withOrderedBytes { buffer.append(contentsOf: $0) }
        child.appendContent(to: &buffer, draining: &hasher)
      }
    }
  }
}

extension Scalar {
  /// The representative of all scalars that equal this one.
  fileprivate var hashed: Scalar {
    if case .double(let value) = self, let integer = Number.integer(equalTo: value) {
      return .integer(integer)
    }
    return self
  }
}
