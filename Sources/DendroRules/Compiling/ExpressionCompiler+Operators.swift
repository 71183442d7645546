extension ExpressionCompiler {
  mutating func unary(
    _ operators: [Expression.UnaryOperator], _ operand: Expression
  ) throws(TextFailure) -> ExpressionType {
    var type = try compile(operand)
    for `operator` in operators.reversed() {
      switch `operator` {
      case .not:
        guard type == .boolean else {
          throw TextFailure("! only operates on booleans.", at: operand.range.lowerBound)
        }
        code.emit(.not)
      case .negate:
        guard type.isNumeric else {
          throw TextFailure("- only operates on numbers.", at: operand.range.lowerBound)
        }
        code.emit(.negate)
        type = .number
      }
    }
    return type
  }

  mutating func chain(
    _ first: Expression, _ links: [Expression.Link]
  ) throws(TextFailure) -> ExpressionType {
    let start = code.next
    var left = first
    var type = try compile(first)
    var jumps: [Int] = []
    for (index, link) in links.enumerated() {
      if let jump = link.operator.jump {
        jumps.append(code.next)
        code.emit(jump)
      }
      let right = try compile(link.operand)
      try check(link, left, type, right)
      if jumps.isEmpty { emit(link, right) }
      type = link.operator.result(type, right)
      left = link.operand
      // The last one is the chain itself.
      if jumps.isEmpty, index < links.count - 1 {
        code.mark(first.range.lowerBound..<link.operand.range.upperBound, from: start)
      }
    }
    for jump in jumps { code.land(jump) }
    return type
  }

  private mutating func emit(_ link: Expression.Link, _ right: ExpressionType) {
    switch link.operator {
    case .equal, .notEqual: emitEquality(link)
    case .less: code.emit(.less)
    case .lessOrEqual: code.emit(.lessOrEqual)
    case .greater: code.emit(.greater)
    case .greaterOrEqual: code.emit(.greaterOrEqual)
    case .add: code.emit(.add)
    case .subtract: code.emit(.subtract)
    case .multiply: code.emit(.multiply)
    case .divide: code.emit(.divide)
    case .remainder: code.emit(.remainder)
    case .and, .or: break
    }
  }

  /// Comparisons with a literal are instructions of their own, since most comparisons are.
  private mutating func emitEquality(_ link: Expression.Link) {
    let isEqual = link.operator == .equal
    guard link.operand.isConstant, let constant = code.takeConstant() else {
      return code.emit(isEqual ? .equal : .notEqual)
    }
    if case .null = link.operand.kind {
      code.emit(isEqual ? .isNull : .isNotNull)
    } else {
      code.emit(isEqual ? .equalTo(constant) : .notEqualTo(constant))
    }
  }

  private mutating func check(
    _ link: Expression.Link, _ left: Expression, _ leftType: ExpressionType,
    _ rightType: ExpressionType
  ) throws(TextFailure) {
    let `operator` = link.operator
    if !`operator`.accepts(leftType) {
      throw TextFailure(`operator`.complaint(about: "left"), at: left.range.lowerBound)
    }
    if !`operator`.accepts(rightType) {
      throw TextFailure(`operator`.complaint(about: "right"), at: link.operand.range.lowerBound)
    }
    if `operator`.level == BinaryOperator.equal.level, leftType.isPrimitive,
      rightType.isPrimitive, leftType != rightType
    {
      hints.append(
        (
          "A \(leftType) never equals a \(rightType): nothing is converted.",
          left.range.lowerBound
        ))
    }
  }
}

extension Expression {
  fileprivate var isConstant: Bool {
    switch kind {
    case .null, .boolean, .number, .string: true
    default: false
    }
  }
}

extension BinaryOperator {
  fileprivate var jump: Instruction? {
    switch self {
    case .and: .jumpIfFalse(0)
    case .or: .jumpIfTrue(0)
    default: nil
    }
  }

  fileprivate func accepts(_ type: ExpressionType) -> Bool {
    switch self {
    case .and, .or: type == .boolean
    case .equal, .notEqual: type.isEquatable
    case .less, .lessOrEqual, .greater, .greaterOrEqual, .add: type.isOrdered
    case .subtract, .multiply, .divide, .remainder: type.isNumeric
    }
  }

  fileprivate func complaint(about side: String) -> String {
    switch self {
    case .and, .or:
      "\(side == "left" ? "Left" : "Right") operand of \(rawValue) must be boolean."
    case .equal where side == "left":
      "Invalid == expression: left operand is not a number, boolean, string, null."
    case .equal, .notEqual:
      "Invalid \(rawValue) expression: \(side) operand is not a number, boolean, string, or null."
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      "Invalid \(rawValue) expression: \(side) operand must be a number or string."
    case .add: "Invalid + expression: \(side) operand is not a number or string."
    case .subtract, .multiply, .divide, .remainder:
      "Invalid \(rawValue) expression: \(side) operand is not a number."
    }
  }

  fileprivate func result(_ left: ExpressionType, _ right: ExpressionType) -> ExpressionType {
    switch self {
    case .and, .or, .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual: .boolean
    case .subtract, .multiply, .divide, .remainder: .number
    case .add where left == .string || right == .string: .string
    case .add: left == .number && right == .number ? .number : .value
    }
  }
}
