/// Reads paths that `BodyWriter` wrote one after the other, and checks them. What a path shares with the one before is
/// not checked again. Nothing is allocated for a path.
package struct PathChecker: ~Copyable {
  /// The stored path read last; memory for `EntryReader.pathByteCountMax` bytes.
  private let path: UnsafeMutableRawPointer
  private var byteCount = 0
  /// Where the keys of that path end, of which there are `keyCount`.
  private var keyEnds = InlineArray<34, Int>(repeating: 0)
  /// The keys of the path read last.
  package private(set) var keyCount = 0
  /// Whether the path read last comes behind the one before and is not below it, if the paths are compared. It may be
  /// false as well if the path shares fewer bytes with the one before than it could.
  package private(set) var isBehindLast = false
  private let comparesPaths: Bool

  package init(comparesPaths: Bool) {
    self.comparesPaths = comparesPaths
    path = .allocate(byteCount: EntryReader.pathByteCountMax, alignment: 8)
  }

  deinit { path.deallocate() }

  /// Forgets the path read last, as if none was read yet.
  package mutating func restart() {
    byteCount = 0
    keyCount = 0
  }

  /// The stored bytes of the path read last, until another one is read.
  package var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: path, count: byteCount)
  }

  /// Reads the path at `offset`, and moves `offset` to its end.
  ///
  /// - Parameters:
  ///   - bytes: what the path lies in.
  ///   - offset: where it begins.
  ///   - depth: keys that it may have.
  /// - Returns: false unless it is one. No other path can be read then.
  package mutating func read(
    _ bytes: UnsafeRawBufferPointer, at offset: inout Int, depth: Int
  ) -> Bool {
    guard let (shared, sharedPrefix) = Varint.read(bytes, at: offset), shared <= byteCount,
      let (rest, restPrefix) = Varint.read(bytes, at: offset + sharedPrefix)
    else { return false }
    offset += sharedPrefix + restPrefix
    guard rest <= bytes.count - offset, shared + rest <= EntryReader.pathByteCountMax else {
      return false
    }
    var sharedKeyCount = keyCount
    while sharedKeyCount > 0, keyEnds[sharedKeyCount - 1] > shared { sharedKeyCount -= 1 }
    let sharedKeysEnd = sharedKeyCount > 0 ? keyEnds[sharedKeyCount - 1] : 0
    if comparesPaths {
      isBehindLast = isBehindLast(bytes, offset, shared, rest, from: sharedKeysEnd)
    }
    if let source = bytes.baseAddress {
      (path + shared).copyMemory(from: source + offset, byteCount: rest)
    }
    offset += rest
    byteCount = shared + rest
    keyCount = sharedKeyCount
    var end = sharedKeysEnd
    while end < byteCount {
      guard keyCount < depth, let keyEnd = Path.keyEnd(validating: self.bytes, at: end) else {
        return false
      }
      end = keyEnd
      keyEnds[keyCount] = end
      keyCount += 1
    }
    return true
  }

  /// Whether the next path comes behind the last one and is not below it, so far as it is valid.
  ///
  /// - Parameter start: where the first key begins in which they differ.
  private func isBehindLast(
    _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ shared: Int, _ rest: Int, from start: Int
  ) -> Bool {
    // The last path ends with its shared keys: the next one is the same, or below it.
    guard start < byteCount, start < shared + rest else { return false }
    let (lastKeyByteCount, lastPrefix) = Varint.readTrusted(path + start)
    // The first key of the next path that differs, which begins with bytes that are shared.
    return withUnsafeTemporaryAllocation(
      byteCount: shared - start + min(rest, Limits.keyBytes + 3), alignment: 1
    ) { room in
      let key = room.baseAddress.unsafelyUnwrapped
      key.copyMemory(from: path + start, byteCount: shared - start)
      (key + (shared - start)).copyMemory(
        from: bytes.baseAddress.unsafelyUnwrapped + offset,
        byteCount: room.count - (shared - start))
      guard let (keyByteCount, prefix) = Varint.read(UnsafeRawBufferPointer(room), at: 0),
        keyByteCount <= room.count - prefix
      else { return false }
      return compareBytes(
        path + (start + lastPrefix), lastKeyByteCount, key + prefix, keyByteCount) < 0
    }
  }
}
