/// Checks the types of an expression and makes its instructions, operands first. The first complaint ends it.
struct ExpressionCompiler {
  let kind: RuleKind
  /// The `$` names in scope; the value is the number of such names above.
  let bindings: [String: Int]
  var code: CodeBuilder
  var hints: [(message: String, offset: Int)] = []

  init(_ kind: RuleKind, bindings: [String: Int], code: consuming CodeBuilder) {
    self.kind = kind
    self.bindings = bindings
    self.code = code
  }

  /// Compiles a whole rule.
  mutating func rule(_ expression: Expression) throws(TextFailure) {
    guard try compile(expression) == .boolean else {
      throw TextFailure(
        "Expression must evaluate to a boolean.", at: expression.range.lowerBound)
    }
  }

  /// Makes the instructions that push the value of an expression.
  mutating func compile(_ expression: Expression) throws(TextFailure) -> ExpressionType {
    let start = code.next
    let type = try compileParts(of: expression)
    if expression.isWorthShowing, type != .snapshot {
      code.mark(expression.range, from: start)
    }
    return type
  }

  private mutating func compileParts(of expression: Expression) throws(TextFailure)
    -> ExpressionType
  {
    switch expression.kind {
    case .null: return constant(nil, .null)
    case .boolean(let value): return constant(.boolean(value), .boolean)
    case .number(let value): return constant(value, .number)
    case .string(let value): return constant(.string(value), .string)
    case .pattern(let text, let flags):
      _ = try pattern(text, flags: flags, at: expression.range.lowerBound)
      code.emit(.unusable)
      return .regex
    case .array:
      throw TextFailure("Unexpected array literal.", at: expression.range.lowerBound)
    case .name(let name): return try variable(name, at: expression.range.lowerBound)
    case .suffixed(let base, let suffixes): return try suffixed(base, suffixes)
    case .unary(let operators, let operand): return try unary(operators, operand)
    case .chain(let first, let links): return try chain(first, links)
    case .conditional(let branches, let otherwise):
      return try conditional(branches, otherwise)
    }
  }

  private mutating func constant(_ value: RuleScalar?, _ type: ExpressionType) -> ExpressionType {
    code.emit(constant: value)
    return type
  }

  private mutating func variable(_ name: String, at offset: Int) throws(TextFailure)
    -> ExpressionType
  {
    let (instruction, type): (Instruction, ExpressionType)
    switch name {
    case "auth": (instruction, type) = (.auth, .any)
    case "now": (instruction, type) = (.now, .number)
    case "root": (instruction, type) = (.root, .snapshot)
    case "data": (instruction, type) = (.data, .snapshot)
    case "query": (instruction, type) = (.unusable, .query)
    case "newData":
      guard kind != .read else {
        throw TextFailure("newData is invalid in .read expressions.", at: offset)
      }
      (instruction, type) = (.newData, .snapshot)
    default:
      guard let slot = bindings[name] else {
        throw TextFailure("Unknown variable '\(name)'.", at: offset)
      }
      (instruction, type) = (.binding(Int32(slot)), .string)
    }
    code.emit(instruction)
    return type
  }

  mutating func pattern(
    _ text: String, flags: String, at offset: Int
  ) throws(TextFailure) -> Int32 {
    guard flags.isEmpty || flags == "i" else {
      throw TextFailure("regular expressions do not support flags other than i", at: offset)
    }
    do {
      let pattern = try Pattern(text, ignoresCase: flags == "i")
      if let index = code.index(pattern: pattern) { return index }
    } catch {
      throw TextFailure("Invalid regular expression: \(error.reason)", at: offset)
    }
    throw TextFailure("The regular expressions of these rules are too large.", at: offset)
  }

  private mutating func conditional(
    _ branches: [Expression.Branch], _ otherwise: Expression
  ) throws(TextFailure) -> ExpressionType {
    var ends: [Int] = []
    var types: [(condition: ExpressionType, result: ExpressionType)] = []
    for branch in branches {
      let condition = try compile(branch.condition)
      let jump = code.next
      code.emit(.takeJumpIfFalse(0))
      types.append((condition, try compile(branch.result)))
      ends.append(code.next)
      code.emit(.jump(0))
      code.land(jump)
    }
    var type = try compile(otherwise)
    for end in ends { code.land(end) }
    for (branch, types) in zip(branches, types).reversed() {
      guard types.condition == .boolean else {
        throw TextFailure(
          "condition of ? must be boolean.", at: branch.condition.range.lowerBound)
      }
      type = ExpressionType(types.result, or: type)
    }
    return type
  }
}

extension Expression {
  /// Whether a trace shows the value: not that of a literal, which the source shows.
  fileprivate var isWorthShowing: Bool {
    switch kind {
    case .null, .boolean, .number, .string, .pattern, .array: false
    case .name(let name): name != "query"
    case .suffixed, .unary, .chain, .conditional: true
    }
  }
}
