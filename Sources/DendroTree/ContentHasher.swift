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
  /// - Complexity: O(bytes). Nothing is allocated for a node.
  package func contentHash(using hasher: inout some ContentHasher) {
    var content = NodeContent()
    if isEmpty {
      content.appendEmpty()
    } else {
      let box = Page.boxing(self)
      content.append(entriesOf: box.access, draining: &hasher)
      withExtendedLifetime(box) {}
    }
    content.drain(into: &hasher, all: true)
  }
}

extension NodeContent {
  /// Appends the children in a page and below it; of a box, the node in it.
  fileprivate mutating func append(
    entriesOf page: PageAccess, draining hasher: inout some ContentHasher
  ) {
    // A large tree is walked mostly waiting for memory.
    if page.hasReferences { page.prefetchReferencedPages() }
    for index in 0..<page.count {
      if page.kind == .inner {
        append(entriesOf: PageAccess(page.reference(index)), draining: &hasher)
        continue
      }
      if page.kind == .leaf {
        let key = page.key(index)
        append(key: UnsafeRawBufferPointer(start: key.start, count: key.count))
      }
      guard page.hasReferences, page.refers(index) else {
        append(leaf: page.valueStart(index))
        continue
      }
      let target = PageAccess(page.reference(index))
      if target.kind != .box { append(branch: page.valueStart(index), childCount: target.total) }
      append(entriesOf: target, draining: &hasher)
    }
    drain(into: &hasher)
  }
}

/// The bytes that a tree's content gives to a hasher, collected so that the hasher gets many at once.
struct NodeContent {
  private static let drainedByteCount = 4_096
  /// The first `count` are used.
  private var bytes = [UInt8](repeating: 0, count: 2 * drainedByteCount)
  private var count = 0

  init() {}

  mutating func drain(into hasher: inout some ContentHasher, all: Bool = false) {
    guard count >= Self.drainedByteCount || all else { return }
    bytes.withUnsafeBytes { hasher.combine(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    count = 0
  }

  /// Appends bytes that `write` puts at the address.
  @inline(__always)
  private mutating func append(room: Int, _ write: (UnsafeMutableRawPointer) -> Void) {
    if bytes.count - count < room {
      bytes.append(contentsOf: repeatElement(0, count: max(bytes.count, room)))
    }
    bytes.withUnsafeMutableBytes { write($0.baseAddress.unsafelyUnwrapped + count) }
    count += room
  }

  private mutating func append(_ byte: UInt8) {
    append(room: 1) { $0.storeBytes(of: byte, as: UInt8.self) }
  }

  mutating func appendEmpty() { append(0) }

  private mutating func append(priority: Scalar?) {
    guard let priority else { return }
    append(PackedScalar.priorityTag)
    append(packed: priority)
  }

  private mutating func append(packed scalar: Scalar) {
    let scalar = scalar.hashed
    append(room: PackedScalar.byteCount(scalar)) { _ = PackedScalar.write(scalar, to: $0) }
  }

  mutating func append(key: UnsafeRawBufferPointer) {
    append(room: 2 + key.count) {
      $0.storeBytes(of: UInt16(key.count).littleEndian, as: UInt16.self)
      guard let start = key.baseAddress else { return }
      ($0 + 2).copyMemory(from: start, byteCount: key.count)
    }
  }

  /// Appends a leaf from its packed form in a page.
  mutating func append(leaf address: UnsafeRawPointer) {
    var address = address
    append(priority: Pages.readPriority(&address))
    let tag = address.load(as: UInt8.self)
    if tag >= PackedScalar.doubleTag, tag < PackedScalar.priorityTag {
      append(1)
      return append(packed: PackedScalar.readTrusted(address).scalar)
    }
    let byteCount = PackedScalar.byteCountTrusted(address)
    append(room: 1 + byteCount) {
      $0.storeBytes(of: 1, as: UInt8.self)
      ($0 + 1).copyMemory(from: address, byteCount: byteCount)
    }
  }

  /// Appends what comes before the children of a branch, whose priority is in the entry that refers to it.
  mutating func append(branch address: UnsafeRawPointer, childCount: Int) {
    var address = address
    append(priority: Pages.readPriority(&address))
    append(room: 9) {
      $0.storeBytes(of: 2, as: UInt8.self)
      ($0 + 1).storeBytes(of: UInt64(childCount).littleEndian, as: UInt64.self)
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
