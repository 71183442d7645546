extension TextParser {
  /// Consumes a string. The next byte is the opening quote.
  mutating func string() throws(TextFailure) -> TextString {
    let opening = next
    next += 1
    var string = TextString(start: next)
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "\""):
        next += 1
        return string
      case UInt8(ascii: "\\"):
        try escape(into: &string)
      case 0..<0x20 where !isAccepted(control: byte):
        throw TextFailure("Control character in a string.", at: next)
      default:
        string.append(byte, at: next)
        next += 1
      }
    }
    throw TextFailure("Unterminated string.", at: opening)
  }

  private func isAccepted(control byte: UInt8) -> Bool {
    dialect == .lenient
      && (byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\t"))
  }

  private mutating func escape(into string: inout TextString) throws(TextFailure) {
    let start = next
    next += 1
    guard let byte = peek else { throw unexpected() }
    if byte == UInt8(ascii: "u") {
      next += 1
      let scalar = try unicodeEscape(at: start)
      for byte in String(scalar).utf8 { string.append(byte, at: start) }
      return
    }
    guard let meaning = Self.meaning(ofEscaped: byte) else {
      throw TextFailure("Invalid escape: '\\\(character(at: next))'", at: start)
    }
    string.append(meaning, at: start)
    next += 1
  }

  private static func meaning(ofEscaped byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: nil
    }
  }

  /// The scalar of an escape, or of a pair of them. Half a pair is U+FFFD: no UTF-8 can have it.
  private mutating func unicodeEscape(at start: Int) throws(TextFailure) -> Unicode.Scalar {
    guard let first = hexadecimal() else { throw TextFailure("Invalid escape: '\\u'", at: start) }
    if let scalar = Unicode.Scalar(first) { return scalar }
    let end = next
    if first < 0xDC00, take("\\"), take("u"), let second = hexadecimal(),
      (0xDC00..<0xE000).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    {
      return scalar
    }
    next = end
    return "\u{FFFD}"
  }

  private mutating func hexadecimal() -> UInt32? {
    guard next + 4 <= bytes.count else { return nil }
    var value: UInt32 = 0
    for byte in bytes[next..<next + 4] {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 | UInt32(digit)
    }
    next += 4
    return value
  }
}
