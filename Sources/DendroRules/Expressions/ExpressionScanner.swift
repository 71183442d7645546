/// Reads the tokens of an expression. The parser says which it expects, since a slash may divide or begin a
/// regular expression.
struct ExpressionScanner {
  let bytes: [UInt8]
  var next = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var peek: UInt8? { peek(0) }

  func peek(_ distance: Int) -> UInt8? {
    next + distance < bytes.count ? bytes[next + distance] : nil
  }

  mutating func skipSpace() {
    while let byte = peek, byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) { next += 1 }
  }

  var isAtEnd: Bool {
    var copy = self
    copy.skipSpace()
    return copy.peek == nil
  }

  /// Consumes the character if it is the next one after white space.
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    skipSpace()
    guard peek == UInt8(ascii: character) else { return false }
    next += 1
    return true
  }

  // MARK: Operators

  /// In the order in which they are tried: none before one that begins with it.
  private static let operators: [(spelling: String, operator: BinaryOperator)] = [
    ("===", .equal), ("!==", .notEqual), ("==", .equal), ("!=", .notEqual), ("<=", .lessOrEqual),
    (">=", .greaterOrEqual), ("&&", .and), ("||", .or), ("<", .less), (">", .greater),
    ("+", .add), ("-", .subtract), ("*", .multiply), ("/", .divide), ("%", .remainder),
  ]

  /// The operator that comes next; nil if there is none.
  mutating func peekOperator() throws(TextFailure) -> BinaryOperator? {
    skipSpace()
    guard let found = nextOperator() else {
      if peek == UInt8(ascii: "=") { throw assignment() }
      return nil
    }
    // `a += 1`
    if found.operator.level >= 5, peek(1) == UInt8(ascii: "=") { throw assignment() }
    return found.operator
  }

  mutating func takeOperator() { next += nextOperator()?.spelling.utf8.count ?? 0 }

  private func nextOperator() -> (spelling: String, operator: BinaryOperator)? {
    guard let byte = peek, byte < 0x80, !Self.isNameByte(byte) else { return nil }
    return Self.operators.first { bytes[next...].starts(with: $0.spelling.utf8) }
  }

  private func assignment() -> TextFailure {
    TextFailure("Rule expressions may not contain assignments.", at: next)
  }

  // MARK: Names and numbers

  private static func isNameByte(_ byte: UInt8) -> Bool {
    isDigit(byte) || byte == UInt8(ascii: "_") || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  /// A name, with its `$` if it has one and may have.
  mutating func name(allowsDollar: Bool = false) throws(TextFailure) -> String? {
    let start = next
    var end = next
    if allowsDollar, peek == UInt8(ascii: "$") { end += 1 }
    let first = end
    while end < bytes.count, Self.isNameByte(bytes[end]) { end += 1 }
    guard end > first, first > start || !Self.isDigit(bytes[first]) else { return nil }
    guard end - start <= RuleLimits.nameBytes else {
      throw TextFailure("The name is longer than \(RuleLimits.nameBytes) bytes.", at: start)
    }
    next = end
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  mutating func number() throws(TextFailure) -> RuleScalar? {
    let start = next
    guard let byte = peek, Self.isDigit(byte) || (byte == UInt8(ascii: ".") && nextIsDigit(1))
    else { return nil }
    skipDigits()
    if peek == UInt8(ascii: "."), nextIsDigit(1) {
      next += 1
      skipDigits()
    }
    if let byte = peek, byte | 0x20 == UInt8(ascii: "e") { skipExponent() }
    let spelling = String(decoding: bytes[start..<next], as: UTF8.self)
    guard let number = RuleScalar(number: spelling) else {
      throw TextFailure("The number is out of range.", at: start)
    }
    return number
  }

  private func nextIsDigit(_ distance: Int) -> Bool { peek(distance).map(Self.isDigit) ?? false }

  private mutating func skipDigits() { while nextIsDigit(0) { next += 1 } }

  private mutating func skipExponent() {
    let sign = peek(1) == UInt8(ascii: "-") || peek(1) == UInt8(ascii: "+")
    guard nextIsDigit(sign ? 2 : 1) else { return }
    next += sign ? 2 : 1
    skipDigits()
  }

  // MARK: Errors

  func expected(_ what: String) -> TextFailure { TextFailure("Expected \(what).", at: next) }

  func unexpected() -> TextFailure {
    guard let byte = peek else { return TextFailure("Unexpected end of expression.", at: next) }
    if byte == UInt8(ascii: "=") { return assignment() }
    var end = next + 1
    while end < bytes.count, bytes[end] & 0xC0 == 0x80 { end += 1 }
    return TextFailure(
      "Unexpected '\(String(decoding: bytes[next..<end], as: UTF8.self))'.", at: next)
  }
}
