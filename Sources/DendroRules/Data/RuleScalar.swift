import DendroTree

/// The value of a leaf, or a priority, as rules see it.
///
/// Equality is that of the data model: 1 equals 1.0, true does not equal 1, and strings are equal only if
/// they have the same code points.
public enum RuleScalar: Sendable {
  /// `true` or `false`.
  case boolean(Bool)
  /// A number without a fraction.
  case integer(Int64)
  /// Any other number.
  case double(Double)
  /// A string.
  case string(String)
}

extension RuleScalar: Hashable {
  /// Whether both are the same value.
  public static func == (a: RuleScalar, b: RuleScalar) -> Bool { a.scalar == b.scalar }

  /// Combines what equal values have in common.
  public func hash(into hasher: inout Hasher) { scalar.hash(into: &hasher) }
}

extension RuleScalar {
  /// Nil for bytes, which no location of the data has.
  init?(_ scalar: Scalar) {
    switch scalar {
    case .bool(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(value)
    case .bytes: return nil
    }
  }

  var scalar: Scalar {
    switch self {
    case .boolean(let value): .bool(value)
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    case .string(let value): .string(value)
    }
  }
}

extension RuleScalar: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral {
  /// Makes a boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// Makes a number.
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension RuleScalar: ExpressibleByFloatLiteral, ExpressibleByStringLiteral {
  /// Makes a number.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// Makes a string.
  public init(stringLiteral value: String) { self = .string(value) }
}
