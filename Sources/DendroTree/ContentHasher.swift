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
    var content = NodeContent()
    appendContent(to: &content, draining: &hasher)
    content.drain(into: &hasher, all: true)
  }

  private func appendContent(
    to content: inout NodeContent, draining hasher: inout some ContentHasher
  ) {
    content.drain(into: &hasher)
    content.append(priority: priority)
    if let scalar {
      content.append(scalar)
    } else if isEmpty {
      content.appendEmpty()
    } else {
      content.append(childCount: childCount)
      forEachChild { key, child in
        key.withOrderedBytes { content.append(key: $0) }
        child.appendContent(to: &content, draining: &hasher)
      }
    }
  }
}

/// The bytes that a tree's content gives to a hasher, collected so that the hasher gets many at once.
struct NodeContent {
  private static let drainedByteCount = 4_096
  private var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(Self.drainedByteCount + 1_024) }

  mutating func drain(into hasher: inout some ContentHasher, all: Bool = false) {
    guard bytes.count >= Self.drainedByteCount || all else { return }
    bytes.withUnsafeBytes { hasher.combine($0) }
    bytes.removeAll(keepingCapacity: true)
  }

  mutating func appendEmpty() { bytes.append(0) }

  mutating func append(priority: Scalar?) {
    guard let priority else { return }
    bytes.append(PackedScalar.priorityTag)
    PackedScalar.append(priority.hashed, to: &bytes)
  }

  mutating func append(_ scalar: Scalar) {
    bytes.append(1)
    PackedScalar.append(scalar.hashed, to: &bytes)
  }

  mutating func append(childCount: Int) {
    bytes.append(2)
    withUnsafeBytes(of: UInt64(childCount).littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func append(key: UnsafeRawBufferPointer) {
    withUnsafeBytes(of: UInt16(key.count).littleEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: key)
  }

  /// Appends a leaf from its packed form in a page.
  mutating func append(leaf address: UnsafeRawPointer) {
    var address = address
    append(priority: Pages.readPriority(&address))
    let tag = address.load(as: UInt8.self)
    if tag >= PackedScalar.doubleTag, tag < PackedScalar.priorityTag {
      return append(PackedScalar.readTrusted(address).scalar)
    }
    bytes.append(1)
    bytes.append(
      contentsOf: UnsafeRawBufferPointer(
        start: address, count: PackedScalar.byteCountTrusted(address)))
  }

  /// Appends what comes before the children of a branch, whose priority is in the entry that refers to it.
  mutating func append(branch address: UnsafeRawPointer, childCount: Int) {
    var address = address
    append(priority: Pages.readPriority(&address))
    append(childCount: childCount)
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
