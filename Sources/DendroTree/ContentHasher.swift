/// Takes bytes one after the other; how they are cut into calls must not matter.
package protocol ContentHasher {
  mutating func combine(_ bytes: UnsafeRawBufferPointer)
}

extension Node {
  /// Feeds a hasher with a form of the content that depends on the content alone.
  ///
  /// Equal trees give equal bytes, on any machine and in any version: 1 and 1.0 are one, and so are
  /// 0 and -0.0. Priorities are included. The form: an empty node is 00; a node with a priority is
  /// 30, the packed priority, the node without it; a leaf is 01 and its packed scalar; a branch is
  /// 02 and the number of children (8 bytes, little-endian), then for each the length of its ordered
  /// bytes (2 bytes, little-endian), these, and the child. A double that is an integer of 64 bits
  /// is packed as one.
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
  /// The one of several equal scalars that is hashed.
  fileprivate var hashed: Scalar {
    if case .double(let value) = self, let integer = Number.integer(equalTo: value) {
      return .integer(integer)
    }
    return self
  }
}
