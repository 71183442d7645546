extension Key {
  /// The place among keys that any string has, also one that is no legal key: "", `a/b`, or one longer
  /// than 768 bytes. Only for bounds: it must never get into a tree.
  ///
  /// A legal string gives the key itself.
  package init(bound string: String) {
    var string = string
    self = string.withUTF8 { utf8 in
      let utf8 = UnsafeRawBufferPointer(utf8)
      if let first = utf8.first, first >= 0x20 {
        return KeyCoding.withOrderedBytes(utf8) { Key(trustedOrderedBytes: $0) }
      }
      // Between the integer keys, whose tags are less, and all others, which begin with 0x20 or more.
      return withUnsafeTemporaryAllocation(byteCount: utf8.count + 1, alignment: 1) { bytes in
        bytes[0] = KeyCoding.unprintableTag
        for (index, byte) in utf8.enumerated() { bytes[index + 1] = KeyCoding.ordered(byte) }
        return Key(trustedOrderedBytes: UnsafeRawBufferPointer(bytes))
      }
    }
  }
}
