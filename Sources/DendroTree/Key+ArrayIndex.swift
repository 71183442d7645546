extension Key {
  /// The array index that this key spells: a whole number from 0 to `Int32.max`, without sign and
  /// leading zeros. Nil for other keys.
  package var arrayIndex: Int? { withOrderedBytes { KeyCoding.arrayIndex($0) } }
}

extension KeyCoding {
  /// The ``Key/arrayIndex`` of ordered bytes.
  @inline(__always)
  static func arrayIndex(_ bytes: UnsafeRawBufferPointer) -> Int? {
    // The tag gives the number of bytes of the magnitude; a spelling that is not canonical has one more
    // byte.
    guard let tag = bytes.first, tag >= 0x10, tag <= 0x14, bytes.count == 1 + Int(tag - 0x10)
    else { return nil }
    var value = 0
    for byte in bytes.dropFirst() { value = value << 8 | Int(byte) }
    return value
  }
}

extension PageAccess {
  /// The length of the JSON array as which the branch with this root page is written; nil for an
  /// object. A branch is an array if all keys are whole numbers without leading zeros and the largest
  /// is less than twice their count.
  var arrayCount: Int? {
    // Integer keys sort first and by value, so the last key decides for nearly every branch.
    var page = self
    while page.kind == .inner { page = PageAccess(page.reference(page.count - 1)) }
    guard page.count > 0, let last = page.arrayIndex(page.count - 1), last < 2 * total,
      hasOnlyArrayIndices
    else {
      return nil
    }
    return last + 1
  }

  private var hasOnlyArrayIndices: Bool {
    for index in 0..<count {
      if kind == .inner {
        guard PageAccess(reference(index)).hasOnlyArrayIndices else { return false }
      } else if arrayIndex(index) == nil {
        return false
      }
    }
    return true
  }

  private func arrayIndex(_ index: Int) -> Int? {
    let key = key(index)
    return KeyCoding.arrayIndex(UnsafeRawBufferPointer(start: key.start, count: key.count))
  }
}
