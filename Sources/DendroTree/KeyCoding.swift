/// Converts between a key's UTF-8 and its ordered bytes (the table in <doc:DataModel>).
///
/// An integer key is a tag and the magnitude in big-endian bytes without leading zeros (complemented
/// for negatives); if the spelling is not canonical, one more byte describes it. Any other key is its
/// UTF-8 with the lead bytes permuted so that U+10000 and above sort before U+E000…U+FFFF, as UTF-16
/// code units do.
enum KeyCoding {
  /// The tag of the integer key 0. All tags of integer keys, 0x0B…0x14, are below every byte of any
  /// other key.
  private static let zeroTag = 0x10
  private static let integerByteCountMax = 6
  /// The bytes of the longest text that may be an integer key: "-2147483648".
  static let integerTextByteCountMax = 11
  /// Precedes the bytes of a query bound that is empty or begins with a control character, which no key
  /// does.
  static let unprintableTag: UInt8 = 0x1F

  /// Describes, as the end of a sentence, why a key of valid UTF-8 is illegal; nil if it is legal.
  static func problem(_ utf8: UnsafeRawBufferPointer) -> String? {
    if utf8.isEmpty { return "is empty." }
    if utf8.count > Limits.keyBytes {
      return "has \(utf8.count) bytes of UTF-8; the limit is \(Limits.keyBytes)."
    }
    for byte in utf8 where !isLegal(byte) {
      return byte < 0x20 || byte == 0x7F
        ? "has the control character U+\(UInt32(byte).hexadecimal(digitCount: 4)); control characters are forbidden."
        : "has '\(Character(UnicodeScalar(byte)))'; the characters [ ] . # $ / are forbidden."
    }
    return nil
  }

  /// Whether a byte of UTF-8 may be part of a key: every byte but control characters and `[ ] . # $ /`.
  ///
  /// Two constants hold one flag for each ASCII character. A static array would be initialised lazily
  /// and check for that on each access.
  @inline(__always)
  private static func isLegal(_ byte: UInt8) -> Bool {
    if byte >= 0x80 { return true }
    let flags: UInt64 = byte < 0x40 ? 0xFFFF_3FE7_0000_0000 : 0x7FFF_FFFF_D7FF_FFFF
    return flags &>> UInt64(byte & 0x3F) & 1 != 0
  }

  /// The key in quotation marks for a message, truncated after 64 bytes.
  static func quoted(_ utf8: UnsafeRawBufferPointer) -> String {
    let shown = String(decoding: utf8.prefix(64), as: UTF8.self)
    var text = "\""
    for scalar in shown.unicodeScalars {
      text +=
        scalar.value < 0x20 || scalar.value == 0x7F ? scalar.escaped(asASCII: true) : String(scalar)
    }
    return text + (utf8.count > 64 ? "…\"" : "\"")
  }

  /// Calls `body` with the ordered bytes of a legal key.
  @inline(__always)
  static func withOrderedBytes<R>(
    _ utf8: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R
  ) -> R {
    withUnsafeTemporaryAllocation(byteCount: utf8.count + 1, alignment: 1) { scratch in
      let count = encode(utf8, to: scratch.baseAddress.unsafelyUnwrapped)
      return body(UnsafeRawBufferPointer(rebasing: scratch[..<count]))
    }
  }

  /// Writes the ordered bytes of a legal key, at most `utf8.count + 1` of them, and returns their count.
  @inline(__always)
  static func encode(_ utf8: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer) -> Int {
    let first = utf8[0]
    if first <= 0x39, first == 0x2D || first >= 0x30, let value = integer(utf8) {
      return encode(value, spelledWith: utf8, to: target)
    }
    let count = utf8.count
    let source = utf8.baseAddress.unsafelyUnwrapped
    var offset = 0
    while offset < count {
      if offset &+ 8 <= count {
        let word = (source + offset).loadUnaligned(as: UInt64.self)
        if word & 0x8080_8080_8080_8080 == 0 {
          (target + offset).storeBytes(of: word, as: UInt64.self)
          offset &+= 8
          continue
        }
      }
      (target + offset).storeBytes(of: ordered(utf8[offset]), as: UInt8.self)
      offset &+= 1
    }
    return count
  }

  /// The value of an integer key; nil for other keys.
  static func integer(_ utf8: UnsafeRawBufferPointer) -> Int32? {
    guard utf8.count <= integerTextByteCountMax else { return nil }
    let isNegative = utf8[0] == 0x2D
    let digits = isNegative ? utf8.dropFirst() : utf8[...]
    guard !digits.isEmpty else { return nil }
    var magnitude = 0
    for byte in digits {
      guard byte >= 0x30 && byte <= 0x39 else { return nil }
      magnitude = magnitude * 10 + Int(byte - 0x30)
    }
    return Int32(exactly: isNegative ? -magnitude : magnitude)
  }

  private static func encode(
    _ value: Int32, spelledWith utf8: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
  ) -> Int {
    let magnitude = value.magnitude
    let byteCount = (32 - magnitude.leadingZeroBitCount + 7) / 8
    let complement: UInt8 = value < 0 ? 0xFF : 0
    let tag = value < 0 ? zeroTag - 1 - byteCount : zeroTag + byteCount
    target.storeBytes(of: UInt8(tag), as: UInt8.self)
    for index in 0..<byteCount {
      let byte = UInt8(truncatingIfNeeded: magnitude >> UInt32(8 * (byteCount - 1 - index)))
      target.storeBytes(of: byte ^ complement, toByteOffset: 1 + index, as: UInt8.self)
    }
    if utf8.count == canonicalByteCount(value) && !(value == 0 && utf8[0] == 0x2D) {
      return 1 + byteCount
    }
    target.storeBytes(
      of: UInt8(2 * utf8.count + (utf8[0] == 0x2D ? 0 : 1)), toByteOffset: 1 + byteCount,
      as: UInt8.self)
    return 2 + byteCount
  }

  private static func canonicalByteCount(_ value: Int32) -> Int {
    var count = value < 0 ? 2 : 1
    var rest = value.magnitude / 10
    while rest > 0 {
      count += 1
      rest /= 10
    }
    return count
  }

  /// What 0xEF, the last lead byte of three, becomes.
  private static let orderedByteMax: UInt8 = 0xF4

  @inline(__always)
  static func ordered(_ byte: UInt8) -> UInt8 {
    byte < 0xEE ? byte : byte < 0xF0 ? byte + 5 : byte - 2
  }

  @inline(__always)
  private static func plain(_ byte: UInt8) -> UInt8 {
    byte < 0xEE ? byte : byte < 0xF3 ? byte + 2 : byte - 5
  }

  /// The spelling of valid ordered bytes, which may also be those of a query bound.
  static func string(orderedBytes bytes: UnsafeRawBufferPointer) -> String {
    guard let first = bytes.first else { return "" }
    if first == unprintableTag {
      return string(permuted: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
    }
    if first < 0x20 { return integerSpelling(bytes) ?? "" }
    return string(permuted: bytes)
  }

  private static func string(permuted bytes: UnsafeRawBufferPointer) -> String {
    // Nearly all keys are of bytes that stand for themselves.
    if isASCII(bytes) { return String(decoding: bytes, as: UTF8.self) }
    return String(unsafeUninitializedCapacity: bytes.count) { utf8 in
      for (index, byte) in bytes.enumerated() { utf8[index] = plain(byte) }
      return bytes.count
    }
  }

  /// The spelling of an integer key; nil if the bytes do not have that form.
  private static func integerSpelling(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard let tag = bytes.first.map(Int.init) else { return nil }
    let isNegative = tag < zeroTag
    let byteCount = isNegative ? zeroTag - 1 - tag : tag - zeroTag
    guard byteCount <= 4, byteCount > 0 || !isNegative else { return nil }
    guard bytes.count == 1 + byteCount || bytes.count == 2 + byteCount else { return nil }
    var magnitude = 0
    for index in 0..<byteCount {
      magnitude = magnitude << 8 | Int(bytes[1 + index] ^ (isNegative ? 0xFF : 0))
    }
    let digits = String(magnitude)
    if bytes.count == 1 + byteCount { return isNegative ? "-" + digits : digits }
    let spelling = Int(bytes[1 + byteCount])
    let hasSign = spelling & 1 == 0
    let zeros = spelling / 2 - digits.utf8.count - (hasSign ? 1 : 0)
    guard zeros >= 0, zeros <= 11 else { return nil }
    return (hasSign ? "-" : "") + String(repeating: "0", count: zeros) + digits
  }

  /// Whether the bytes are the ordered bytes of a legal key.
  static func isValid(orderedBytes bytes: UnsafeRawBufferPointer) -> Bool {
    guard let first = bytes.first, bytes.count <= Limits.keyBytes else { return false }
    if first < 0x20 {
      guard bytes.count <= integerByteCountMax, var spelling = integerSpelling(bytes),
        spelling.utf8.count <= integerTextByteCountMax
      else { return false }
      return spelling.withUTF8 { utf8 in
        let utf8 = UnsafeRawBufferPointer(utf8)
        guard integer(utf8) != nil else { return false }
        return withOrderedBytes(utf8) { compareCounted($0, bytes) == 0 }
      }
    }
    var isASCII = true
    for byte in bytes {
      if byte >= 0x80 {
        // No byte of UTF-8 becomes a greater one; `plain` would make one of it.
        if byte > orderedByteMax { return false }
        isASCII = false
      } else if !isLegal(byte) {
        return false
      }
    }
    if first <= 0x39, integer(bytes) != nil { return false }
    if isASCII { return true }
    return withUnsafeTemporaryAllocation(byteCount: bytes.count, alignment: 1) { utf8 in
      for (index, byte) in bytes.enumerated() { utf8[index] = plain(byte) }
      return isValidUTF8(UnsafeRawBufferPointer(utf8))
    }
  }

  private static func compareCounted(
    _ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer
  ) -> Int {
    guard let x = a.baseAddress, let y = b.baseAddress else { return a.count - b.count }
    return compareBytes(x, a.count, y, b.count)
  }
}
