/// A key that is read in place: of a child, of a stored path, or of any other memory that outlives it.
///
/// It refers to ordered bytes without keeping them alive, as a `NodeView` refers to pages.
package struct KeyView {
  /// The first of the ordered bytes.
  package let start: UnsafeRawPointer
  /// The number of ordered bytes.
  package let count: Int

  /// - Parameter orderedBytes: those of a key, of which there is at least one.
  package init(orderedBytes: UnsafeRawBufferPointer) {
    start = orderedBytes.baseAddress.unsafelyUnwrapped
    count = orderedBytes.count
  }

  init(_ bytes: (start: UnsafeRawPointer, count: Int)) { (start, count) = bytes }

  package var orderedBytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: count)
  }

  package var string: String { KeyCoding.string(orderedBytes: orderedBytes) }
  package var key: Key { Key(trustedOrderedBytes: orderedBytes) }

  /// The spelling, where it is the ordered bytes themselves: of keys of ASCII that are no integers.
  package var spelledBytes: UnsafeRawBufferPointer? {
    guard let first = orderedBytes.first, first >= 0x20, isASCII(orderedBytes) else { return nil }
    return orderedBytes
  }
}

/// The keys of a path, read in place from its stored bytes.
package struct KeyViews: Sequence, IteratorProtocol {
  private var rest: UnsafeRawPointer?
  private let end: UnsafeRawPointer?

  /// - Parameter storedPath: the stored bytes of a path; they outlive the keys.
  package init(storedPath: UnsafeRawBufferPointer) {
    rest = storedPath.baseAddress
    end = rest.map { $0 + storedPath.count }
  }

  /// Whether there are no more.
  package var isAtEnd: Bool { rest == end }

  package mutating func next() -> KeyView? {
    guard let start = rest, let end, start < end else { return nil }
    let (count, prefix) = Varint.readTrusted(start)
    rest = start + prefix + count
    return KeyView((start + prefix, count))
  }
}
