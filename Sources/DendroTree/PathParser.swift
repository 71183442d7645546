/// Turns the text of a path into its stored bytes: every path that an app names goes through here.
///
/// It looks at eight bytes at a time, and copies them while it does.
struct PathParser {
  /// Valid UTF-8.
  private let utf8: UnsafeRawBufferPointer

  init(_ utf8: UnsafeRawBufferPointer) { self.utf8 = utf8 }

  /// The room that `parse(into:)` needs for a text of so many bytes.
  ///
  /// A key of n bytes takes at most n + 2 in a path, and n + 1 in the text with its slash. The last eight bytes
  /// that are copied may reach beyond them.
  static func storedByteCountMax(ofTextOf byteCount: Int) -> Int {
    2 &* byteCount &+ 2 &+ wordByteCount
  }

  private static let wordByteCount = 8

  /// Writes the stored bytes of the path. Empty keys are dropped.
  ///
  /// - Parameter target: has room for `storedByteCountMax(ofTextOf:)` bytes.
  /// - Throws: `ValidationError` of kind `.invalidPath`, which names the illegal key.
  @inline(__always)
  func parse(
    into target: UnsafeMutableRawPointer
  ) throws(ValidationError) -> (byteCount: Int, keyCount: Int) {
    var illegalStart = 0
    guard let parsed = parse(into: target, &illegalStart) else {
      throw error(inKeyAt: illegalStart)
    }
    return parsed
  }

  /// As `parse(into:)`, and nil if a key is illegal.
  ///
  /// - Parameter illegalStart: is set to where that key begins.
  @inline(__always)
  func parse(
    into target: UnsafeMutableRawPointer, _ illegalStart: inout Int
  ) -> (byteCount: Int, keyCount: Int)? {
    var end = target
    var keyCount = 0
    var start = 0
    while start < utf8.count {
      // One byte is left for the length of the key.
      let keyEnd = copyKey(at: start, to: end + 1)
      let count = keyEnd &- start
      if count > 0 {
        guard count <= Limits.keyBytes, keyEnd == utf8.count || utf8[keyEnd] == Self.slash else {
          illegalStart = start
          return nil
        }
        end = finishKey(at: start, count, end)
        keyCount &+= 1
      } else if utf8[keyEnd] != Self.slash {
        illegalStart = start
        return nil
      }
      start = keyEnd &+ 1
    }
    return (end - target, keyCount)
  }

  /// Writes the stored form of the one key that the text is.
  ///
  /// - Parameter target: has room for `storedByteCountMax(ofTextOf:)` bytes.
  /// - Returns: its bytes; 0 if the key is illegal.
  @inline(__always)
  func parseKey(into target: UnsafeMutableRawPointer) -> Int {
    let count = utf8.count
    guard count > 0, count <= Limits.keyBytes, copyKey(at: 0, to: target + 1) == count else {
      return 0
    }
    return finishKey(at: 0, count, target) - target
  }

  private static let slash: UInt8 = 0x2F
  private static let backslash: UInt8 = 0x5C

  /// Copies legal bytes in the order of keys.
  ///
  /// - Returns: where they end: at a slash, at an illegal byte or at the end of the text.
  @inline(__always)
  private func copyKey(at start: Int, to target: UnsafeMutableRawPointer) -> Int {
    var offset = start
    while true {
      let word = word(at: offset)
      (target + (offset &- start)).storeBytes(of: word.littleEndian, as: UInt64.self)
      let special = Self.specialBytes(of: word)
      if special == 0 {
        offset &+= Self.wordByteCount
        continue
      }
      offset &+= special.trailingZeroBitCount >> 3
      guard offset < utf8.count else { return utf8.count }
      let byte = utf8[offset]
      guard byte >= 0x80 || byte == Self.backslash else { return offset }
      (target + (offset &- start)).storeBytes(of: KeyCoding.ordered(byte), as: UInt8.self)
      offset &+= 1
    }
  }

  /// Eight bytes of the text, the first one in the lowest bits; zeros stand for those behind its end.
  @inline(__always)
  private func word(at offset: Int) -> UInt64 {
    let rest = utf8.count &- offset
    if rest >= Self.wordByteCount {
      return UInt64(littleEndian: utf8.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    if rest <= 0 { return 0 }
    if utf8.count >= Self.wordByteCount {
      let last = utf8.loadUnaligned(
        fromByteOffset: utf8.count &- Self.wordByteCount, as: UInt64.self)
      return UInt64(littleEndian: last) &>> UInt64(8 &* (Self.wordByteCount &- rest))
    }
    var word: UInt64 = 0
    for index in 0..<rest { word |= UInt64(utf8[offset &+ index]) &<< UInt64(8 &* index) }
    return word
  }

  /// The highest bit of each byte that is not simply copied: control characters and DEL, `# $`, `. /`, `[ \ ]`,
  /// and what is not ASCII. A backslash is legal, and here since it lies between the brackets.
  @inline(__always)
  private static func specialBytes(of word: UInt64) -> UInt64 {
    let ascii = word & repeated(0x7F)
    /// Sets the highest bit of the bytes that are at least `first`. None carries into the next one.
    func atLeast(_ first: UInt8) -> UInt64 { ascii &+ repeated(0x80 - first) }
    let special =
      ~atLeast(0x20) | (atLeast(0x23) & ~atLeast(0x25)) | (atLeast(0x2E) & ~atLeast(0x30))
      | (atLeast(0x5B) & ~atLeast(0x5E)) | atLeast(0x7F) | word
    return special & repeated(0x80)
  }

  @inline(__always)
  private static func repeated(_ byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

  /// Completes a key whose bytes were copied behind the one at `end`: an integer is encoded as one, and the
  /// length is put before it.
  ///
  /// - Returns: the end of the key.
  @inline(__always)
  private func finishKey(
    at start: Int, _ count: Int, _ end: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let first = utf8[start]
    if count <= KeyCoding.integerTextByteCountMax, first <= 0x39, first >= 0x30 || first == 0x2D {
      let key = UnsafeRawBufferPointer(rebasing: utf8[start..<start &+ count])
      let byteCount = KeyCoding.encode(key, to: end + 1)
      end.storeBytes(of: UInt8(truncatingIfNeeded: byteCount), as: UInt8.self)
      return end + 1 + byteCount
    }
    if count < 0x80 {
      end.storeBytes(of: UInt8(truncatingIfNeeded: count), as: UInt8.self)
      return end + 1 + count
    }
    return makeRoom(for: count, at: end)
  }

  /// Puts a length of two bytes before a key that was copied behind one byte.
  @inline(never)
  private func makeRoom(
    for count: Int, at end: UnsafeMutableRawPointer
  ) -> UnsafeMutableRawPointer {
    let text = end + Varint.byteCount(count)
    text.copyMemory(from: end + 1, byteCount: count)
    _ = Varint.write(count, to: end)
    return text + count
  }

  @inline(never)
  private func error(inKeyAt start: Int) -> ValidationError {
    let end = utf8[start...].firstIndex(of: Self.slash) ?? utf8.count
    let key = UnsafeRawBufferPointer(rebasing: utf8[start..<end])
    guard let reason = KeyCoding.problem(key) else {
      preconditionFailure("a key that was refused is illegal")
    }
    return ValidationError(
      .invalidPath,
      "The key \(KeyCoding.quoted(key)) of the path \(KeyCoding.quoted(utf8)) \(reason)")
  }
}
