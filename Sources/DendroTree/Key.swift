/// One component of a path.
///
/// A key is stored as *ordered bytes*: a form whose byte-by-byte order is the order of keys (integer
/// keys first, by value; then all others by UTF-16 code units), see <doc:DataModel>. Pages, logs and
/// checkpoints contain the same bytes. Keys are equal if they are spelled with the same code points;
/// Unicode normalisation does not apply.
///
/// Keys of up to 23 bytes are stored inline; longer ones cost one allocation. A key is a value and may
/// be used on any thread.
package struct Key: Sendable {
  /// In memory order: the first 23 bytes, padded with zeros, then the count, or
  /// `Key.overflowSentinel`. Compared as big-endian integers, the words order as the bytes do, a prefix
  /// first.
  private var words: (UInt64, UInt64, UInt64)
  /// All bytes, if there are more than 23.
  private var overflow: [UInt8]?

  static let inlineByteCountMax = 23
  private static let overflowSentinel: UInt8 = 0xFF

  /// - Throws: `ValidationError` of kind `.invalidKey` if the string is empty, longer than 768
  ///   bytes of UTF-8, or has a control character or one of `[ ] . # $ /`.
  package init(_ string: String) throws(ValidationError) {
    var string = string
    let result: Result<Key, ValidationError> = string.withUTF8 { utf8 in
      Result { () throws(ValidationError) in try Key(trusted: UnsafeRawBufferPointer(utf8)) }
    }
    self = try result.get()
  }

  /// Makes a key of a name that the code itself has.
  ///
  /// - Precondition: it is a legal key.
  package init(fixed name: StaticString) {
    do {
      try self.init("\(name)")
    } catch {
      preconditionFailure("\(error)")
    }
  }

  /// Makes the key of a number, in decimal digits.
  package init(_ number: some FixedWidthInteger) {
    do {
      try self.init(String(number))
    } catch {
      preconditionFailure("\(error)")
    }
  }

  /// Makes a key from UTF-8, which is validated.
  ///
  /// - Throws: `ValidationError` of kind `.invalidKey`, as `init(_:)`, or if the bytes are not UTF-8.
  package init(utf8: UnsafeRawBufferPointer) throws(ValidationError) {
    guard isValidUTF8(utf8) else {
      throw ValidationError(.invalidKey, "A key is not valid UTF-8.")
    }
    try self.init(trusted: utf8)
  }

  /// Makes a key from valid UTF-8.
  init(trusted utf8: UnsafeRawBufferPointer) throws(ValidationError) {
    if let problem = KeyCoding.problem(utf8) {
      throw ValidationError(.invalidKey, "The key \(KeyCoding.quoted(utf8)) \(problem)")
    }
    self = KeyCoding.withOrderedBytes(utf8) { Key(trustedOrderedBytes: $0) }
  }

  /// Makes a key from its ordered bytes; nil unless they are the ordered bytes of a legal key.
  package init?(orderedBytes: UnsafeRawBufferPointer) {
    guard KeyCoding.isValid(orderedBytes: orderedBytes) else { return nil }
    self.init(trustedOrderedBytes: orderedBytes)
  }

  /// Stands for the key of a child that cannot be read.
  static let lost = Key(trustedOrderedBytes: UnsafeRawBufferPointer(start: nil, count: 0))

  /// Makes a key from bytes that are known to be the ordered bytes of a legal key.
  @inline(__always)
  init(trustedOrderedBytes bytes: UnsafeRawBufferPointer) {
    words = (0, 0, 0)
    overflow = nil
    let count = bytes.count
    guard let start = bytes.baseAddress else { return }
    withUnsafeMutableBytes(of: &words) { words in
      let target = words.baseAddress.unsafelyUnwrapped
      target.copyMemory(from: start, byteCount: min(count, Key.inlineByteCountMax))
      target.storeBytes(
        of: count <= Key.inlineByteCountMax ? UInt8(count) : Key.overflowSentinel,
        toByteOffset: Key.inlineByteCountMax, as: UInt8.self)
    }
    if count > Key.inlineByteCountMax { overflow = Array(bytes) }
  }

  /// Calls `body` with the ordered bytes, which are valid only during the call.
  @inline(__always)
  package func withOrderedBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    if let overflow {
      // Array's method does not throw typed errors.
      let result: Result<R, E> = overflow.withUnsafeBytes { bytes in
        Result { () throws(E) in try body(bytes) }
      }
      return try result.get()
    }
    return try withUnsafeBytes(of: words) { (words) throws(E) in
      try body(UnsafeRawBufferPointer(rebasing: words[..<Int(words[Key.inlineByteCountMax])]))
    }
  }

  /// The number of ordered bytes, at least 1.
  package var orderedByteCount: Int {
    overflow?.count ?? Int(UInt8(truncatingIfNeeded: words.2.bigEndian))
  }

  /// The spelling of the key.
  package var string: String { withOrderedBytes { KeyCoding.string(orderedBytes: $0) } }
}

extension Key: CustomStringConvertible {
  package var description: String { string }
}

extension Key: Comparable {
  package static func == (a: Key, b: Key) -> Bool {
    a.words.0 == b.words.0 && a.words.1 == b.words.1 && a.words.2 == b.words.2
      && a.overflow == b.overflow
  }

  package static func < (a: Key, b: Key) -> Bool {
    if a.words.0 != b.words.0 { return a.words.0.bigEndian < b.words.0.bigEndian }
    if a.words.1 != b.words.1 { return a.words.1.bigEndian < b.words.1.bigEndian }
    if a.words.2 != b.words.2 { return a.words.2.bigEndian < b.words.2.bigEndian }
    guard let x = a.overflow, let y = b.overflow else { return false }
    return x.lexicographicallyPrecedes(y)
  }
}

extension Key: Hashable {
  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    if let overflow { hasher.combine(overflow) }
  }
}
