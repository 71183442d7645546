/// Parses JSON into values that know their place in the text.
///
/// The lenient dialect is that of rules: comments, a comma after the last element, and line breaks and tabs
/// in strings. The strict one is RFC 8259. Nesting is bounded, since the parser recurses.
struct TextParser {
  enum Dialect {
    case lenient
    case strict
  }

  let bytes: [UInt8]
  let dialect: Dialect
  var next = 0
  private var depth = 0

  init(_ bytes: [UInt8], _ dialect: Dialect) {
    self.bytes = bytes
    self.dialect = dialect
  }

  /// Parses the whole text.
  static func parse(_ bytes: [UInt8], _ dialect: Dialect) throws(TextFailure) -> TextValue {
    var parser = TextParser(bytes, dialect)
    // Editors put a byte order mark before a text.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { parser.next = 3 }
    let value = try parser.value()
    try parser.skipSpace()
    if parser.next < bytes.count { throw parser.unexpected() }
    return value
  }

  // MARK: Values

  private mutating func value() throws(TextFailure) -> TextValue {
    try skipSpace()
    let start = next
    guard let byte = peek else { throw unexpected() }
    let kind: TextValue.Kind
    switch byte {
    case UInt8(ascii: "{"):
      kind = .object(try nested { (p) throws(TextFailure) in try p.members() })
    case UInt8(ascii: "["):
      kind = .array(try nested { (p) throws(TextFailure) in try p.elements() })
    case UInt8(ascii: "\""): kind = .string(try string())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): kind = .number(try number())
    default: kind = try word()
    }
    return TextValue(kind: kind, range: start..<next)
  }

  private mutating func nested<R>(
    _ body: (inout TextParser) throws(TextFailure) -> R
  ) throws(TextFailure) -> R {
    guard depth < RuleLimits.nesting else {
      throw TextFailure("Nested more than \(RuleLimits.nesting) levels deep.", at: next)
    }
    depth += 1
    defer { depth -= 1 }
    return try body(&self)
  }

  private mutating func members() throws(TextFailure) -> [TextMember] {
    var members: [TextMember] = []
    next += 1
    try skipSpace()
    if take("}") { return members }
    guard peek == UInt8(ascii: "\"") else { throw unexpected() }
    while true {
      guard peek == UInt8(ascii: "\"") else { throw expected("'\"'") }
      let name = try string()
      try skipSpace()
      guard take(":") else { throw expected("':'") }
      members.append(TextMember(name: name, value: try value()))
      try skipSpace()
      if take("}") { return members }
      guard take(",") else { throw expected("',' or '}'") }
      try skipSpace()
      if dialect == .lenient, take("}") { return members }
    }
  }

  private mutating func elements() throws(TextFailure) -> [TextValue] {
    var elements: [TextValue] = []
    next += 1
    try skipSpace()
    if take("]") { return elements }
    while true {
      elements.append(try value())
      try skipSpace()
      if take("]") { return elements }
      guard take(",") else { throw expected("',' or ']'") }
      try skipSpace()
      if dialect == .lenient, take("]") { return elements }
    }
  }

  private mutating func word() throws(TextFailure) -> TextValue.Kind {
    if take(word: "null") { return .null }
    if take(word: "true") { return .boolean(true) }
    if take(word: "false") { return .boolean(false) }
    throw unexpected()
  }

  private mutating func take(word: String) -> Bool {
    guard bytes[next...].starts(with: word.utf8) else { return false }
    next += word.utf8.count
    return true
  }

  private mutating func number() throws(TextFailure) -> String {
    let start = next
    _ = take("-")
    if take("0") {
      if peek.map(Self.isDigit) == true { throw unexpected() }
    } else {
      try digits()
    }
    if take(".") { try digits() }
    if take("e") || take("E") {
      if !take("-") { _ = take("+") }
      try digits()
    }
    return String(decoding: bytes[start..<next], as: UTF8.self)
  }

  private mutating func digits() throws(TextFailure) {
    guard let byte = peek, Self.isDigit(byte) else { throw unexpected() }
    while let byte = peek, Self.isDigit(byte) { next += 1 }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
  }

  // MARK: Bytes

  var peek: UInt8? { next < bytes.count ? bytes[next] : nil }

  /// Consumes the character if it is next.
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    next += 1
    return true
  }

  mutating func skipSpace() throws(TextFailure) {
    while let byte = peek {
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): next += 1
      case UInt8(ascii: "/") where dialect == .lenient: try skipComment()
      default: return
      }
    }
  }

  private mutating func skipComment() throws(TextFailure) {
    let start = next
    next += 1
    if take("/") {
      while let byte = peek, byte != UInt8(ascii: "\n") { next += 1 }
    } else if take("*") {
      while !(peek == UInt8(ascii: "*") && next + 1 < bytes.count
        && bytes[next + 1] == UInt8(ascii: "/"))
      {
        guard next < bytes.count else { throw TextFailure("Unterminated comment.", at: start) }
        next += 1
      }
      next += 2
    } else {
      next = start
      throw unexpected()
    }
  }

  // MARK: Errors

  func expected(_ what: String) -> TextFailure { TextFailure("Expected \(what).", at: next) }

  func unexpected() -> TextFailure {
    guard next < bytes.count else { return TextFailure("Unexpected end of text.", at: next) }
    return TextFailure("Unexpected '\(character(at: next))'.", at: next)
  }

  /// The character of the text that begins at `offset`.
  func character(at offset: Int) -> String {
    var end = offset + 1
    while end < bytes.count, bytes[end] & 0xC0 == 0x80 { end += 1 }
    return String(decoding: bytes[offset..<end], as: UTF8.self)
  }
}
