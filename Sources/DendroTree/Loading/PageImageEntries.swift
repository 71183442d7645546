/// Checks the entries of a page in a chunk, one after the other.
struct PageImageEntries {
  /// The keys, and then the values.
  private let bytes: UnsafeRawBufferPointer
  private let keysEnd: Int
  private let kind: PageHeader.Kind
  private let hasReferences: Bool
  /// Whether leaves may be bytes, as in the second root.
  private let allowsBytes: Bool
  /// Whether the keys are those of a leaf page that was checked.
  private let areKeysChecked: Bool
  /// Where the last entry's key, with its length, and its value are in `bytes`.
  private var key = 0..<0
  private var value: Range<Int>
  /// The key of the last entry, without its length.
  private var lastKey = 0..<0
  private var count = 0
  /// How many of the entries so far have the tag of a reference.
  private(set) var referenceCount = 0
  /// Whether a value so far begins with a priority.
  private(set) var hasPriorities = false
  /// Where the next byte is that was not checked.
  private(set) var offset = 0

  /// - Parameters:
  ///   - keyByteCount: at most the count of the bytes.
  ///   - areKeysChecked: whether the bytes of the keys, and their count, are those of a leaf page whose entries were
  ///     all right.
  init(
    _ bytes: UnsafeRawBufferPointer, keyByteCount: Int, kind: PageHeader.Kind, hasReferences: Bool,
    allowsBytes: Bool, areKeysChecked: Bool
  ) {
    self.bytes = bytes
    keysEnd = keyByteCount
    value = keyByteCount..<keyByteCount
    self.kind = kind
    self.hasReferences = hasReferences
    self.allowsBytes = allowsBytes
    self.areKeysChecked = areKeysChecked
  }

  /// Whether all bytes belong to the entries so far.
  var isAtEnd: Bool { key.upperBound == keysEnd && value.upperBound == bytes.count }

  /// Checks the next entry.
  ///
  /// - Returns: what should be at `offset` and is not; nil if the entry is right.
  mutating func next() -> String? {
    let start = key.upperBound
    offset = start
    guard let (keyCount, prefix) = Varint.read(bytes, at: offset), keyCount <= Limits.keyBytes,
      keyCount <= keysEnd - offset - prefix
    else { return "a key" }
    offset += prefix
    let ordered = offset..<offset + keyCount
    switch kind {
    case .leaf where areKeysChecked: break
    case .leaf:
      guard KeyCoding.isValid(orderedBytes: UnsafeRawBufferPointer(rebasing: bytes[ordered])) else {
        return "a legal key"
      }
      if count > 0, !isAfterLast(ordered) { return "a key after the one before" }
    case .inner:
      // The first bound counts as less than all keys.
      if count > 1, !isAfterLast(ordered) { return "a bound after the one before" }
    case .box, .stub:
      if keyCount > 0 { return "a box without a key" }
    }
    lastKey = ordered
    count += 1
    key = start..<ordered.upperBound
    offset = value.upperBound
    value = offset..<offset
    if kind == .inner { return nil }
    return nextValue()
  }

  /// Copies the last entry to a page, which has room for it.
  ///
  /// - Returns: the count of bytes.
  func copy(to target: UnsafeMutableRawPointer) -> Int {
    let base = bytes.baseAddress.unsafelyUnwrapped
    target.copyMemory(from: base + key.lowerBound, byteCount: key.count)
    (target + key.count).copyMemory(from: base + value.lowerBound, byteCount: value.count)
    return key.count + value.count
  }

  private func isAfterLast(_ key: Range<Int>) -> Bool {
    let start = bytes.baseAddress.unsafelyUnwrapped
    return compareBytes(
      start + lastKey.lowerBound, lastKey.count, start + key.lowerBound, key.count) < 0
  }

  private mutating func nextValue() -> String? {
    guard offset < bytes.count else { return "a value" }
    let start = offset
    if bytes[offset] == PackedScalar.priorityTag {
      guard offset + 1 < bytes.count, bytes[offset + 1] >= PackedScalar.integerTag,
        let end = PackedScalar.end(validating: bytes, at: offset + 1)
      else { return "a priority" }
      hasPriorities = true
      offset = end
    }
    if offset < bytes.count, bytes[offset] == Pages.referenceTag {
      guard hasReferences else { return "a leaf" }
      referenceCount += 1
      offset += 1
    } else {
      let end = PackedScalar.end(validating: bytes, at: offset)
      let bytesEnd = allowsBytes ? PackedScalar.bytesEnd(validating: bytes, at: offset) : nil
      guard let end = end ?? bytesEnd else { return "a leaf" }
      offset = end
    }
    value = start..<offset
    let isTooLong = kind == .leaf && offset - start > Page.inlineValueByteCountMax
    return isTooLong ? "a shorter value" : nil
  }
}
