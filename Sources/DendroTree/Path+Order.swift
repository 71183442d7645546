extension Path: Comparable {
  /// Compares key by key in the order of keys; a prefix comes first.
  package static func < (a: Path, b: Path) -> Bool {
    a.withStoredBytes { a in b.withStoredBytes { b in storedBytes(a, precede: b) } }
  }

  /// `a < b`, by the stored bytes of the two paths.
  package static func storedBytes(
    _ a: UnsafeRawBufferPointer, precede b: UnsafeRawBufferPointer
  ) -> Bool { compareStored(a, b) < 0 }

  /// Compares two paths by their stored bytes: negative, zero or positive.
  static func compareStored(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    var offset = 0
    while offset < a.count && offset < b.count {
      let x = a.baseAddress.unsafelyUnwrapped + offset
      let y = b.baseAddress.unsafelyUnwrapped + offset
      let (xCount, xPrefix) = Varint.readTrusted(x)
      let (yCount, yPrefix) = Varint.readTrusted(y)
      let order = compareBytes(x + xPrefix, xCount, y + yPrefix, yCount)
      if order != 0 { return order }
      offset += xPrefix + xCount  // Equal keys have equal sizes.
    }
    return a.count &- b.count
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
