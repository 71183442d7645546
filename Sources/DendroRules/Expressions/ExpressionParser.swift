/// Parses the text of one expression.
///
/// It recurses for brackets and for operators of a higher level, and bounds both together.
struct ExpressionParser {
  var scanner: ExpressionScanner
  private var depth = 0

  init(_ source: [UInt8]) { scanner = ExpressionScanner(source) }

  /// Parses a whole text. Offsets of failures are those in `source`.
  static func parse(_ source: [UInt8]) throws(TextFailure) -> Expression {
    var parser = ExpressionParser(source)
    let expression = try parser.expression()
    guard parser.scanner.isAtEnd else { throw parser.scanner.unexpected() }
    return expression
  }

  private mutating func nested<R>(
    _ body: (inout ExpressionParser) throws(TextFailure) -> R
  ) throws(TextFailure) -> R {
    guard depth < RuleLimits.nesting else { throw Self.tooDeep(at: scanner.next) }
    depth += 1
    defer { depth -= 1 }
    return try body(&self)
  }

  // MARK: Operators

  mutating func expression() throws(TextFailure) -> Expression {
    let start = scanner.next
    let expression = try nested { (parser) throws(TextFailure) in try parser.conditional() }
    guard expression.height <= RuleLimits.nesting else { throw Self.tooDeep(at: start) }
    return expression
  }

  private static func tooDeep(at offset: Int) -> TextFailure {
    TextFailure(
      "The expression is nested more than \(RuleLimits.nesting) levels deep.", at: offset)
  }

  private mutating func conditional() throws(TextFailure) -> Expression {
    var branches: [Expression.Branch] = []
    while true {
      let expression = try binary(1)
      guard scanner.take("?") else {
        guard let first = branches.first else { return expression }
        let range = first.condition.range.lowerBound..<expression.range.upperBound
        return Expression(kind: .conditional(branches, otherwise: expression), range: range)
      }
      let result = try self.expression()
      guard scanner.take(":") else { throw scanner.expected("':'") }
      branches.append(Expression.Branch(condition: expression, result: result))
    }
  }

  /// Operators of `level` and above.
  private mutating func binary(_ level: Int) throws(TextFailure) -> Expression {
    var left = try unary()
    while let found = try scanner.peekOperator(), found.level >= level {
      left = try chain(left, found.level)
    }
    return left
  }

  /// The operators of one level that follow each other.
  private mutating func chain(_ first: Expression, _ level: Int) throws(TextFailure) -> Expression {
    var links: [Expression.Link] = []
    var end = first.range.upperBound
    while let found = try scanner.peekOperator(), found.level == level {
      scanner.takeOperator()
      let operand = try operand(above: level)
      end = operand.range.upperBound
      links.append(Expression.Link(operator: found, operand: operand))
    }
    return Expression(kind: .chain(first, links), range: first.range.lowerBound..<end)
  }

  private mutating func operand(above level: Int) throws(TextFailure) -> Expression {
    let first = try unary()
    guard let found = try scanner.peekOperator(), found.level > level else { return first }
    return try nested { (parser) throws(TextFailure) in
      var left = first
      while let found = try parser.scanner.peekOperator(), found.level > level {
        left = try parser.chain(left, found.level)
      }
      return left
    }
  }

  private mutating func unary() throws(TextFailure) -> Expression {
    scanner.skipSpace()
    let start = scanner.next
    var operators: [Expression.UnaryOperator] = []
    while true {
      if scanner.peek == UInt8(ascii: "!"), scanner.peek(1) != UInt8(ascii: "=") {
        scanner.next += 1
        operators.append(.not)
      } else if scanner.take("-") {
        operators.append(.negate)
      } else {
        break
      }
      scanner.skipSpace()
    }
    let operand = try suffixed(try primary())
    if operators.isEmpty { return operand }
    return Expression(kind: .unary(operators, operand), range: start..<operand.range.upperBound)
  }

  // MARK: Suffixes

  private mutating func suffixed(_ base: Expression) throws(TextFailure) -> Expression {
    var suffixes: [Expression.Suffix] = []
    while let suffix = try suffix() { suffixes.append(suffix) }
    guard let last = suffixes.last else { return base }
    let range = base.range.lowerBound..<last.range.upperBound
    // Brackets around `data.exists` change nothing: it may be called behind them.
    if case .suffixed(let inner, let first) = base.kind {
      return Expression(kind: .suffixed(inner, first + suffixes), range: range)
    }
    return Expression(kind: .suffixed(base, suffixes), range: range)
  }

  private mutating func suffix() throws(TextFailure) -> Expression.Suffix? {
    scanner.skipSpace()
    let start = scanner.next
    let kind: Expression.Suffix.Kind
    if scanner.take(".") {
      scanner.skipSpace()
      guard let name = try scanner.name() else { throw scanner.expected("a name") }
      kind = .member(name)
    } else if scanner.take("[") {
      kind = .index(try expression())
      guard scanner.take("]") else { throw scanner.expected("']'") }
    } else if scanner.take("(") {
      kind = .call(try list(upTo: ")"))
    } else {
      return nil
    }
    return Expression.Suffix(kind: kind, range: start..<scanner.next)
  }

  /// The expressions up to a closing bracket, which is consumed.
  private mutating func list(upTo end: Unicode.Scalar) throws(TextFailure) -> [Expression] {
    var elements: [Expression] = []
    if scanner.take(end) { return elements }
    while true {
      elements.append(try expression())
      if scanner.take(end) { return elements }
      guard scanner.take(",") else { throw scanner.expected("',' or '\(end)'") }
    }
  }

  // MARK: Operands

  private mutating func primary() throws(TextFailure) -> Expression {
    scanner.skipSpace()
    let start = scanner.next
    if scanner.take("(") {
      let inner = try expression()
      guard scanner.take(")") else { throw scanner.expected("')'") }
      return Expression(kind: inner.kind, range: start..<scanner.next)
    }
    let kind: Expression.Kind
    if scanner.take("[") {
      kind = .array(try list(upTo: "]"))
    } else if let string = try scanner.string() {
      kind = .string(string)
    } else if let number = try scanner.number() {
      kind = .number(number)
    } else if let (pattern, flags) = try scanner.pattern() {
      kind = .pattern(pattern, flags: flags)
    } else if let name = try scanner.name(allowsDollar: true) {
      kind = Self.kind(of: name)
    } else {
      throw scanner.unexpected()
    }
    return Expression(kind: kind, range: start..<scanner.next)
  }

  private static func kind(of name: String) -> Expression.Kind {
    switch name {
    case "true": .boolean(true)
    case "false": .boolean(false)
    case "null": .null
    default: .name(name)
    }
  }
}
