/// A path: the keys that lead from the root to a location.
///
/// A path is stored as one array of bytes: for each key the number of its ordered bytes as a LEB128
/// varint, then these bytes. Logs and checkpoints contain the same bytes. A path is a value and may be
/// used on any thread.
package struct Path: Sendable {
  private let bytes: [UInt8]
  /// The number of keys.
  package let count: Int

  private init(bytes: [UInt8], count: Int) {
    self.bytes = bytes
    self.count = count
  }

  /// The path of the whole tree, which has no keys.
  package static let root = Path(bytes: [], count: 0)

  /// Parses keys separated by slashes. Empty keys are dropped, so "" and "/" are the root.
  ///
  /// - Throws: `ValidationError` of kind `.invalidPath`, which names the illegal key.
  package init(parsing text: String) throws(ValidationError) {
    var text = text
    let result: Result<Path, ValidationError> = text.withUTF8 { utf8 in
      Result { () throws(ValidationError) in try Path(validUTF8: UnsafeRawBufferPointer(utf8)) }
    }
    self = try result.get()
  }

  private init(validUTF8 utf8: UnsafeRawBufferPointer) throws(ValidationError) {
    var parsed: Result<(byteCount: Int, keyCount: Int), ValidationError> = .success((0, 0))
    bytes = [UInt8](unsafeUninitializedCapacity: Self.storedByteCountMax(of: utf8)) {
      target, written in
      parsed = Result { () throws(ValidationError) in
        try Path.encode(utf8, to: UnsafeMutableRawPointer(target.baseAddress.unsafelyUnwrapped))
      }
      if case .success(let (byteCount, _)) = parsed { written = byteCount }
    }
    count = try parsed.get().keyCount
  }

  /// Parses a path as `init(parsing:)` does, and calls `body` with its stored bytes, for which nothing is
  /// allocated.
  ///
  /// - Parameter body: gets the stored bytes, valid only during the call, and the number of keys.
  static func withStoredBytes<R>(
    parsing text: String, _ body: (UnsafeRawBufferPointer, Int) -> R
  ) throws(ValidationError) -> R {
    var text = text
    let result: Result<R, ValidationError> = text.withUTF8 { utf8 in
      let utf8 = UnsafeRawBufferPointer(utf8)
      return withUnsafeTemporaryAllocation(
        byteCount: storedByteCountMax(of: utf8), alignment: 1
      ) { target in
        Result { () throws(ValidationError) in
          let (byteCount, keyCount) = try encode(
            utf8, to: target.baseAddress.unsafelyUnwrapped)
          return body(UnsafeRawBufferPointer(rebasing: target[..<byteCount]), keyCount)
        }
      }
    }
    return try result.get()
  }

  /// `withStoredBytes(parsing:_:)` without a result, for other modules, where the generic form is not
  /// specialized.
  package static func parse(
    _ text: String, _ body: (UnsafeRawBufferPointer, Int) -> Void
  ) throws(ValidationError) {
    try withStoredBytes(parsing: text, body)
  }

  /// A segment of n bytes needs at most n + 2 in a path, and takes n + 1 in the text with its slash.
  private static func storedByteCountMax(of utf8: UnsafeRawBufferPointer) -> Int {
    2 * utf8.count + 2
  }

  /// Writes the stored bytes of a path to `target`, which has room for them.
  private static func encode(
    _ utf8: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
  ) throws(ValidationError) -> (byteCount: Int, keyCount: Int) {
    var next = target
    var keyCount = 0
    var segmentStart = 0
    while segmentStart < utf8.count {
      var segmentEnd = segmentStart
      while segmentEnd < utf8.count && utf8[segmentEnd] != 0x2F { segmentEnd &+= 1 }
      if segmentEnd > segmentStart {
        let segment = UnsafeRawBufferPointer(rebasing: utf8[segmentStart..<segmentEnd])
        if let reason = KeyCoding.problem(segment) {
          throw ValidationError(
            .invalidPath,
            "The key \(KeyCoding.quoted(segment)) of the path \(KeyCoding.quoted(utf8)) \(reason)")
        }
        next = Path.write(segment, to: next)
        keyCount += 1
      }
      segmentStart = segmentEnd + 1
    }
    return (next - target, keyCount)
  }

  /// Writes the length and the ordered bytes of one key, and returns the address after them.
  @inline(__always)
  private static func write(
    _ segment: UnsafeRawBufferPointer, to next: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    // The number of ordered bytes is known only after encoding. For a segment of less than 127 bytes its
    // varint always takes one byte.
    if segment.count < 127 {
      let byteCount = KeyCoding.encode(segment, to: next + 1)
      next.storeBytes(of: UInt8(byteCount), as: UInt8.self)
      return next + 1 + byteCount
    }
    let byteCount = segment.count  // Too long for an integer key, so encoding keeps the length.
    let target = Varint.write(byteCount, to: next)
    _ = KeyCoding.encode(segment, to: target)
    return target + byteCount
  }

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

  /// Makes a path from its stored bytes; nil unless they are the stored form of legal keys.
  package init?(storedBytes: UnsafeRawBufferPointer) {
    guard let count = Path.keyCount(validating: storedBytes) else { return nil }
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
    let result: Result<R, E> = bytes.withUnsafeBytes { bytes in
      Result { () throws(E) in try body(bytes) }
    }
    return try result.get()
  }

  /// The stored bytes, for the hot paths of other modules. The optimizer specializes an array's accessors
  /// there, but not `withStoredBytes`.
  package var storedBytes: [UInt8] { bytes }

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
    return Path(bytes: Array(bytes[..<offset(ofKey: count)]), count: count)
  }

  /// The path without its first `count` keys (the root if there are fewer).
  package func dropFirst(_ count: Int) -> Path {
    guard count > 0 else { return self }
    guard count < self.count else { return .root }
    return Path(bytes: Array(bytes[offset(ofKey: count)...]), count: self.count - count)
  }

  func offset(ofKey index: Int) -> Int {
    bytes.withUnsafeBytes { bytes in
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
    bytes.reserveCapacity(self.bytes.count + 2 + key.orderedByteCount)
    bytes.append(contentsOf: self.bytes)
    Path.append(key, to: &bytes)
    return Path(bytes: bytes, count: count + 1)
  }

  /// The path of a location below this one, given its path relative to this one.
  package func appending(_ path: Path) -> Path {
    if path.isRoot { return self }
    if isRoot { return path }
    return Path(bytes: bytes + path.bytes, count: count + path.count)
  }

  /// Whether `other` is this location or below it.
  package func isPrefix(of other: Path) -> Bool {
    // Each key is preceded by its length, so a prefix in bytes is a prefix in keys.
    count <= other.count && bytes.count <= other.bytes.count
      && bytes.withUnsafeBytes { a in
        other.bytes.withUnsafeBytes { b in
          guard let x = a.baseAddress, let y = b.baseAddress else { return true }
          return compareBytes(x, a.count, y, a.count) == 0
        }
      }
  }

  /// The path relative to `ancestor`; nil if this path is not at or below `ancestor`.
  package func relative(to ancestor: Path) -> Path? {
    guard ancestor.isPrefix(of: self) else { return nil }
    if ancestor.isRoot { return self }
    return Path(bytes: Array(bytes[ancestor.bytes.count...]), count: count - ancestor.count)
  }
}

extension Path {
  package var keys: Keys { Keys(path: self) }

  /// The keys of a path, beginning at the root.
  package struct Keys: Sequence, Sendable {
    let path: Path

    package func makeIterator() -> Iterator { Iterator(bytes: path.bytes) }

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
  package static func == (a: Path, b: Path) -> Bool { a.bytes == b.bytes }
  package func hash(into hasher: inout Hasher) { withStoredBytes { hasher.combine(bytes: $0) } }
}

extension Path: Comparable {
  /// Compares key by key in the order of keys; a prefix comes first.
  package static func < (a: Path, b: Path) -> Bool {
    a.withStoredBytes { a in b.withStoredBytes { b in storedBytes(a, precede: b) } }
  }

  /// `a < b`, by the stored bytes of the two paths.
  package static func storedBytes(
    _ a: UnsafeRawBufferPointer, precede b: UnsafeRawBufferPointer
  ) -> Bool {
    var offset = 0
    while offset < a.count && offset < b.count {
      let x = a.baseAddress.unsafelyUnwrapped + offset
      let y = b.baseAddress.unsafelyUnwrapped + offset
      let (xCount, xPrefix) = Varint.readTrusted(x)
      let (yCount, yPrefix) = Varint.readTrusted(y)
      let order = compareBytes(x + xPrefix, xCount, y + yPrefix, yCount)
      if order != 0 { return order < 0 }
      offset += xPrefix + xCount  // Equal keys have equal sizes.
    }
    return a.count < b.count
  }

  /// Whether the path with the stored bytes `a` comes before the one with `b`, and neither is below the other.
  package static func storedBytes(
    _ a: UnsafeRawBufferPointer, precedeAsSiblings b: UnsafeRawBufferPointer
  ) -> Bool {
    guard storedBytes(a, precede: b), let x = a.baseAddress, let y = b.baseAddress else {
      return false
    }
    // A path that is below another begins with all of its bytes.
    return a.count >= b.count || compareBytes(x, a.count, y, a.count) != 0
  }
}

extension Path: CustomStringConvertible {
  /// The keys, each preceded by a slash; "/" for the root.
  package var description: String {
    if isRoot { return "/" }
    var text = ""
    for key in keys {
      text += "/"
      text += key.string
    }
    return text
  }
}
