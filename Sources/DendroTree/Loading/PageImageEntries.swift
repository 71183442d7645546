/// Checks the entries of a page in a chunk, one after the other.
struct PageImageEntries {
  private let bytes: UnsafeRawBufferPointer
  private let kind: PageHeader.Kind
  private let hasReferences: Bool
  private(set) var offset = 0
  /// How many of the entries so far have the tag of a reference.
  private(set) var referenceCount = 0
  /// Whether a value so far begins with a priority.
  private(set) var hasPriorities = false
  private var count = 0
  private var lastKey = 0..<0

  init(_ bytes: UnsafeRawBufferPointer, kind: PageHeader.Kind, hasReferences: Bool) {
    self.bytes = bytes
    self.kind = kind
    self.hasReferences = hasReferences
  }

  /// Checks the next entry.
  ///
  /// - Returns: what should be at `offset` and is not; nil where the entry is right.
  mutating func next() -> String? {
    guard let (keyCount, prefix) = Varint.read(bytes, at: offset), keyCount <= Limits.keyBytes,
      keyCount <= bytes.count - offset - prefix
    else { return "a key" }
    offset += prefix
    let key = offset..<offset + keyCount
    switch kind {
    case .leaf:
      guard KeyCoding.isValid(orderedBytes: UnsafeRawBufferPointer(rebasing: bytes[key])) else {
        return "a legal key"
      }
      if count > 0, !isAfterLast(key) { return "a key after the one before" }
    case .inner:
      // The first bound counts as less than all keys.
      if count > 1, !isAfterLast(key) { return "a bound after the one before" }
    case .box, .stub:
      if keyCount > 0 { return "a box without a key" }
    }
    lastKey = key
    count += 1
    offset = key.upperBound
    if kind == .inner { return nil }
    return value()
  }

  private func isAfterLast(_ key: Range<Int>) -> Bool {
    let start = bytes.baseAddress.unsafelyUnwrapped
    return compareBytes(
      start + lastKey.lowerBound, lastKey.count, start + key.lowerBound, key.count) < 0
  }

  private mutating func value() -> String? {
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
      guard let end = PackedScalar.end(validating: bytes, at: offset) else { return "a leaf" }
      offset = end
    }
    let isTooLong = kind == .leaf && offset - start > Page.inlineValueByteCountMax
    return isTooLong ? "a shorter value" : nil
  }
}
