extension ExpressionScanner {
  /// A string in single or double quotes.
  mutating func string() throws(TextFailure) -> String? {
    guard let quote = peek, quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") else {
      return nil
    }
    let start = next
    var text: [UInt8] = []
    next += 1
    while let byte = peek {
      next += 1
      if byte == quote { return String(decoding: text, as: UTF8.self) }
      if byte == UInt8(ascii: "\\") { try escape(into: &text) } else { text.append(byte) }
    }
    throw TextFailure("Unterminated string literal.", at: start)
  }

  private mutating func escape(into text: inout [UInt8]) throws(TextFailure) {
    guard let byte = peek else { throw unexpected() }
    let start = next - 1
    next += 1
    switch byte {
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "v"): text.append(0x0B)
    case UInt8(ascii: "x"), UInt8(ascii: "u"):
      guard let scalar = scalar(digitCount: byte == UInt8(ascii: "x") ? 2 : 4) else {
        throw TextFailure("Invalid escape in a string literal.", at: start)
      }
      text.append(contentsOf: String(scalar).utf8)
    default: text.append(byte)
    }
  }

  /// The scalar of an escape or of a pair of them; half a pair is U+FFFD.
  private mutating func scalar(digitCount: Int) -> Unicode.Scalar? {
    guard let first = hexadecimal(digitCount) else { return nil }
    if let scalar = Unicode.Scalar(first) { return scalar }
    let end = next
    if first < 0xDC00, peek == UInt8(ascii: "\\"), peek(1) == UInt8(ascii: "u") {
      next += 2
      if let second = hexadecimal(4), (0xDC00..<0xE000).contains(second),
        let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
      {
        return scalar
      }
    }
    next = end
    return "\u{FFFD}"
  }

  private mutating func hexadecimal(_ digitCount: Int) -> UInt32? {
    guard next + digitCount <= bytes.count else { return nil }
    var value: UInt32 = 0
    for byte in bytes[next..<next + digitCount] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 | UInt32(digit)
    }
    next += digitCount
    return value
  }

  /// A regular expression: what is between the slashes, and the letters after them.
  mutating func pattern() throws(TextFailure) -> (pattern: String, flags: String)? {
    guard peek == UInt8(ascii: "/") else { return nil }
    let start = next
    var end = next + 1
    var isInClass = false
    while end < bytes.count, bytes[end] != UInt8(ascii: "/") || isInClass {
      switch bytes[end] {
      case UInt8(ascii: "\\"): end += 1
      case UInt8(ascii: "["): isInClass = true
      case UInt8(ascii: "]"): isInClass = false
      default: break
      }
      end += 1
    }
    guard end < bytes.count else {
      throw TextFailure("unterminated regular expression literal", at: start)
    }
    next = end + 1
    let pattern = String(decoding: bytes[start + 1..<end], as: UTF8.self)
    return (pattern, try name() ?? "")
  }
}
