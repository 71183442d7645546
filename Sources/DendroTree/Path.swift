/// A path: the keys that lead from the root to a location.
///
/// A path is stored as one array of bytes: for each key the number of its ordered bytes as a LEB128
/// varint, then these bytes. Logs and checkpoints contain the same bytes. A path is a value and may be
/// used on any thread.
package struct Path: Sendable {
  /// The stored bytes. For the hot paths of other modules: the optimizer specializes an array's accessors there, but not
  /// `withStoredBytes`.
  package let storedBytes: [UInt8]
  /// The number of keys.
  package let count: Int

  init(bytes: [UInt8], count: Int) {
    storedBytes = bytes
    self.count = count
  }

  /// The path of the whole tree, which has no keys.
  package static let root = Path(bytes: [], count: 0)

  package init(keys: some Sequence<Key>) {
    var bytes: [UInt8] = []
    var count = 0
    for key in keys {
      Path.append(key, to: &bytes)
      count += 1
    }
    self.init(bytes: bytes, count: count)
  }

  /// Appends the stored form of one key.
  package static func append(_ key: Key, to bytes: inout [UInt8]) {
    Varint.append(key.orderedByteCount, to: &bytes)
    key.withOrderedBytes { bytes.append(contentsOf: $0) }
  }

  /// Writes the number that precedes the ordered bytes of a key: a byte, or two from 128 on.
  package static func writeKeyByteCount(_ count: Int, to target: UnsafeMutableRawPointer) {
    _ = Varint.write(count, to: target)
  }

  /// Makes a path from its stored bytes; nil unless they are the stored form of legal keys.
  package init?(storedBytes: UnsafeRawBufferPointer) {
    guard let count = Path.keyCount(validating: storedBytes) else { return nil }
    self.init(bytes: Array(storedBytes), count: count)
  }

  /// Makes a path from stored bytes that are known to be those of legal keys.
  package init(trusted storedBytes: UnsafeRawBufferPointer) {
    var count = 0
    var offset = 0
    while offset < storedBytes.count {
      let (byteCount, prefix) = Varint.readTrusted(
        storedBytes.baseAddress.unsafelyUnwrapped + offset)
      offset += prefix + byteCount
      count += 1
    }
    self.init(bytes: Array(storedBytes), count: count)
  }

  /// The number of keys in stored bytes; nil unless they are the stored form of legal keys.
  ///
  /// - Complexity: O(bytes); allocates nothing.
  package static func keyCount(validating storedBytes: UnsafeRawBufferPointer) -> Int? {
    var offset = 0
    var count = 0
    while offset < storedBytes.count {
      guard let end = keyEnd(validating: storedBytes, at: offset) else { return nil }
      offset = end
      count += 1
    }
    return count
  }

  /// Where the key ends that begins at `offset` in stored bytes; nil unless it is legal.
  @inline(__always)
  package static func keyEnd(
    validating storedBytes: UnsafeRawBufferPointer, at offset: Int
  ) -> Int? {
    guard let (byteCount, prefix) = Varint.read(storedBytes, at: offset),
      byteCount <= storedBytes.count - offset - prefix
    else { return nil }
    let start = offset + prefix
    let key = UnsafeRawBufferPointer(rebasing: storedBytes[start..<start + byteCount])
    return KeyCoding.isValid(orderedBytes: key) ? start + byteCount : nil
  }

  /// Calls `body` with the stored bytes, which are valid only during the call.
  @inline(__always)
  package func withStoredBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    // Array's method does not throw typed errors.
    let result: Result<R, E> = storedBytes.withUnsafeBytes { bytes in
      Result { () throws(E) in try body(bytes) }
    }
    return try result.get()
  }

  package var isRoot: Bool { count == 0 }

  package var first: Key? {
    var iterator = keys.makeIterator()
    return iterator.next()
  }

  package var last: Key? {
    var last: Key?
    for key in keys { last = key }
    return last
  }

  /// The path without its last key; nil for the root.
  package var parent: Path? { isRoot ? nil : prefix(count - 1) }

  /// The first `count` keys (all of them if there are fewer).
  package func prefix(_ count: Int) -> Path {
    guard count < self.count else { return self }
    return Path(bytes: Array(storedBytes[..<offset(ofKey: count)]), count: count)
  }

  /// The path without its first `count` keys (the root if there are fewer).
  package func dropFirst(_ count: Int) -> Path {
    guard count > 0 else { return self }
    guard count < self.count else { return .root }
    return Path(bytes: Array(storedBytes[offset(ofKey: count)...]), count: self.count - count)
  }

  func offset(ofKey index: Int) -> Int {
    storedBytes.withUnsafeBytes { bytes in
      var offset = 0
      for _ in 0..<index {
        let (byteCount, prefix) = Varint.readTrusted(bytes.baseAddress.unsafelyUnwrapped + offset)
        offset += prefix + byteCount
      }
      return offset
    }
  }

  package func appending(_ key: Key) -> Path {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(storedBytes.count + 2 + key.orderedByteCount)
    bytes.append(contentsOf: storedBytes)
    Path.append(key, to: &bytes)
    return Path(bytes: bytes, count: count + 1)
  }

  /// The path of a location below this one, given its path relative to this one.
  package func appending(_ path: Path) -> Path {
    if path.isRoot { return self }
    if isRoot { return path }
    return Path(bytes: storedBytes + path.storedBytes, count: count + path.count)
  }

  /// Whether `other` is this location or below it.
  package func isPrefix(of other: Path) -> Bool {
    // Each key is preceded by its length, so a prefix in bytes is a prefix in keys.
    count <= other.count && storedBytes.count <= other.storedBytes.count
      && storedBytes.withUnsafeBytes { a in
        other.storedBytes.withUnsafeBytes { b in
          guard let x = a.baseAddress, let y = b.baseAddress else { return true }
          return compareBytes(x, a.count, y, a.count) == 0
        }
      }
  }

  /// The path relative to `ancestor`; nil if this path is not at or below `ancestor`.
  package func relative(to ancestor: Path) -> Path? {
    guard ancestor.isPrefix(of: self) else { return nil }
    if ancestor.isRoot { return self }
    return Path(
      bytes: Array(storedBytes[ancestor.storedBytes.count...]), count: count - ancestor.count)
  }
}

extension Path {
  package var keys: Keys { Keys(path: self) }

  /// The keys of a path, beginning at the root.
  package struct Keys: Sequence, Sendable {
    let path: Path

    package func makeIterator() -> Iterator { Iterator(bytes: path.storedBytes) }

    package struct Iterator: IteratorProtocol, Sendable {
      let bytes: [UInt8]
      private var offset = 0

      init(bytes: [UInt8]) { self.bytes = bytes }

      package mutating func next() -> Key? {
        guard offset < bytes.count else { return nil }
        return bytes.withUnsafeBytes { bytes in
          let (count, prefix) = Varint.readTrusted(bytes.baseAddress.unsafelyUnwrapped + offset)
          let start = offset + prefix
          offset = start + count
          return Key(trustedOrderedBytes: UnsafeRawBufferPointer(rebasing: bytes[start..<offset]))
        }
      }
    }
  }
}

extension Path: Hashable {
  package static func == (a: Path, b: Path) -> Bool { a.storedBytes == b.storedBytes }
  package func hash(into hasher: inout Hasher) { withStoredBytes { hasher.combine(bytes: $0) } }
}

extension Path: CustomStringConvertible {
  /// The keys, each preceded by a slash; "/" for the root.
  package var description: String { "/" + relativeText }

  /// The keys, separated by slashes; empty for the root.
  ///
  /// Not `description.dropFirst()`: a character may be a slash and the combining mark with which the first key begins.
  package var relativeText: String {
    var text = ""
    for key in keys {
      if !text.isEmpty { text += "/" }
      text += key.string
    }
    return text
  }
}
