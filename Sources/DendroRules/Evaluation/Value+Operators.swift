extension Value {
  /// Never converts. What is unusable equals nothing.
  static func isEqual(_ a: Value, _ b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.bool(let a), .bool(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.double(let a), .double(let b)): a == b
    case (.integer(let a), .double(let b)), (.double(let b), .integer(let a)):
      Int64(exactly: b) == a
    case (.string(let a), .string(let b)): Text.isEqual(a, b)
    default: false
    }
  }

  /// Whether `a` is less than `b`, or with `orEqual` not greater. Comparisons with NaN are false.
  static func isLess(_ a: Value, _ b: Value, orEqual: Bool) throws(Failure) -> Bool {
    switch (a, b) {
    case (.integer(let a), .integer(let b)): return orEqual ? a <= b : a < b
    case (.double(let a), .double(let b)): return orEqual ? a <= b : a < b
    case (.integer(let a), .double(let b)):
      if b.isNaN { return false }
      let order = compare(a, b)
      return orEqual ? order <= 0 : order < 0
    case (.double(let a), .integer(let b)):
      if a.isNaN { return false }
      let order = -compare(b, a)
      return orEqual ? order <= 0 : order < 0
    case (.string(let a), .string(let b)):
      return orEqual ? !Text.precedes(b, a) : Text.precedes(a, b)
    default: throw .comparison
    }
  }

  /// Exactly: an integer above 2^53 may lie between two doubles.
  private static func compare(_ a: Int64, _ b: Double) -> Int {
    if b >= 0x1p63 { return -1 }
    if b < -0x1p63 { return 1 }
    let whole = Int64(b.rounded(.down))
    if a != whole { return a < whole ? -1 : 1 }
    return Double(whole) < b ? -1 : 0
  }

  /// The number as a double; nil for what is no number.
  private var double: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    default: nil
    }
  }

  /// The sum of two numbers. As with increments, integers stay exact while they fit 64 bits.
  static func sum(_ a: Value, _ b: Value) -> Value? {
    if case .integer(let a) = a, case .integer(let b) = b {
      let (sum, overflow) = a.addingReportingOverflow(b)
      if !overflow { return .integer(sum) }
    }
    guard let a = a.double, let b = b.double else { return nil }
    return .double(a + b)
  }

  static func difference(_ a: Value, _ b: Value) throws(Failure) -> Value {
    if case .integer(let a) = a, case .integer(let b) = b {
      let (difference, overflow) = a.subtractingReportingOverflow(b)
      if !overflow { return .integer(difference) }
    }
    return .double(try number(a) - number(b))
  }

  static func product(_ a: Value, _ b: Value) throws(Failure) -> Value {
    if case .integer(let a) = a, case .integer(let b) = b {
      let (product, overflow) = a.multipliedReportingOverflow(by: b)
      if !overflow { return .integer(product) }
    }
    return .double(try number(a) * number(b))
  }

  /// A division by zero is NaN, whatever is divided.
  static func quotient(_ a: Value, _ b: Value) throws(Failure) -> Value {
    if case .integer(let a) = a, case .integer(let b) = b, let quotient = a.exactQuotient(by: b) {
      return .integer(quotient)
    }
    let (a, b) = (try number(a), try number(b))
    return .double(b == 0 ? .nan : a / b)
  }

  /// Has the sign of what is divided.
  static func remainder(_ a: Value, _ b: Value) throws(Failure) -> Value {
    if case .integer(let a) = a, case .integer(let b) = b, b != 0 {
      return .integer(b == -1 ? 0 : a % b)
    }
    return .double(try number(a).truncatingRemainder(dividingBy: number(b)))
  }

  static func negated(_ a: Value) throws(Failure) -> Value {
    switch a {
    case .integer(let value) where value != .min && value != 0: return .integer(-value)
    case .integer(let value): return .double(-Double(value))
    case .double(let value): return .double(-value)
    default: throw .negation
    }
  }

  private static func number(_ value: Value) throws(Failure) -> Double {
    guard let number = value.double else { throw .arithmetic }
    return number
  }
}

extension Int64 {
  /// Nil if the quotient is no integer, or does not fit.
  fileprivate func exactQuotient(by other: Int64) -> Int64? {
    guard other != 0 else { return nil }
    let (quotient, overflow) = dividedReportingOverflow(by: other)
    return !overflow && quotient &* other == self ? quotient : nil
  }
}
