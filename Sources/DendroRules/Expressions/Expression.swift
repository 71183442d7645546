/// An expression as it is written, with its place.
///
/// Operators of one level, suffixes and conditions in a row are lists and not nested, so that the depth of an
/// expression is that of its brackets and not its length.
struct Expression {
  indirect enum Kind {
    case null
    case boolean(Bool)
    case number(RuleScalar)
    case string(String)
    /// What stands between the slashes, and after them.
    case pattern(String, flags: String)
    case array([Expression])
    /// A variable; with the `$` if it has one.
    case name(String)
    case suffixed(Expression, [Suffix])
    /// The operators as they are written: the last one is applied first.
    case unary([UnaryOperator], Expression)
    /// Operators of one level, from left to right.
    case chain(Expression, [Link])
    case conditional([Branch], otherwise: Expression)
  }

  enum UnaryOperator {
    case not
    case negate
  }

  struct Suffix {
    enum Kind {
      case member(String)
      case index(Expression)
      case call([Expression])
    }
    let kind: Kind
    let range: Range<Int>
  }

  struct Link {
    let `operator`: BinaryOperator
    let operand: Expression
  }

  struct Branch {
    let condition: Expression
    let result: Expression
  }

  let kind: Kind
  /// The bytes of the source that are the expression.
  let range: Range<Int>
  /// One more than that of the highest part.
  let height: Int

  init(kind: Kind, range: Range<Int>) {
    self.kind = kind
    self.range = range
    height = 1 + kind.heightOfParts
  }

  /// The value of a literal `true` or `false`.
  var literal: Bool? { if case .boolean(let value) = kind { value } else { nil } }
}

/// An operator between two operands. The raw value is how messages spell it.
enum BinaryOperator: String {
  case or = "||"
  case and = "&&"
  case equal = "=="
  case notEqual = "!="
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case remainder = "%"

  /// What binds more tightly has a higher level.
  var level: Int {
    switch self {
    case .or: 1
    case .and: 2
    case .equal, .notEqual: 3
    case .less, .lessOrEqual, .greater, .greaterOrEqual: 4
    case .add, .subtract: 5
    case .multiply, .divide, .remainder: 6
    }
  }
}

extension Expression.Kind {
  fileprivate var heightOfParts: Int {
    switch self {
    case .null, .boolean, .number, .string, .pattern, .name: 0
    case .array(let elements): elements.greatestHeight
    case .unary(_, let operand): operand.height
    case .chain(let first, let links): max(first.height, links.map(\.operand).greatestHeight)
    case .suffixed(let base, let suffixes):
      max(base.height, suffixes.map(\.kind.heightOfParts).max() ?? 0)
    case .conditional(let branches, let otherwise):
      max(
        otherwise.height, branches.map(\.condition).greatestHeight,
        branches.map(\.result).greatestHeight)
    }
  }
}

extension Expression.Suffix.Kind {
  fileprivate var heightOfParts: Int {
    switch self {
    case .member: 0
    case .index(let index): index.height
    case .call(let arguments): arguments.greatestHeight
    }
  }
}

extension [Expression] {
  fileprivate var greatestHeight: Int { lazy.map(\.height).max() ?? 0 }
}
