/// An integer or a double. A leaf is incremented by a number.
package enum Number: Sendable {
  case integer(Int64)
  /// A finite double.
  case double(Double)

  /// Returns the sum: an integer if both numbers are integers and the sum fits 64 bits, otherwise a
  /// double.
  ///
  /// A sum beyond the greatest finite double becomes that double, since leaves are finite.
  package func adding(_ other: Number) -> Number {
    if case .integer(let a) = self, case .integer(let b) = other {
      let (sum, overflows) = a.addingReportingOverflow(b)
      if !overflows { return .integer(sum) }
    }
    let sum = doubleValue + other.doubleValue
    let greatest = Double.greatestFiniteMagnitude
    return .double(min(max(sum, -greatest), greatest))
  }

  /// The nearest double.
  package var doubleValue: Double {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    }
  }

  package var isFinite: Bool { doubleValue.isFinite }

  package var scalar: Scalar {
    switch self {
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    }
  }

  /// Increments `existing`, the scalar of the leaf before the write, by this number.
  ///
  /// - Returns: the sum if `existing` is a number, otherwise this number.
  package func incrementing(_ existing: Scalar?) -> Scalar {
    switch existing {
    case .integer(let value): Number.integer(value).adding(self).scalar
    case .double(let value): Number.double(value).adding(self).scalar
    case .bool, .string, .bytes, nil: scalar
    }
  }
}

extension Number: Comparable {
  package static func == (a: Number, b: Number) -> Bool { compare(a, b) == 0 }
  package static func < (a: Number, b: Number) -> Bool { compare(a, b) < 0 }

  /// Compares by value and exactly: an integer is not rounded to a double.
  ///
  /// - Returns: negative, zero or positive.
  static func compare(_ a: Number, _ b: Number) -> Int {
    switch (a, b) {
    case (.integer(let x), .integer(let y)): x == y ? 0 : x < y ? -1 : 1
    case (.double(let x), .double(let y)): x == y ? 0 : x < y ? -1 : 1
    case (.integer(let x), .double(let y)): compare(x, y)
    case (.double(let x), .integer(let y)): -compare(y, x)
    }
  }

  private static func compare(_ integer: Int64, _ double: Double) -> Int {
    if double >= 0x1p63 { return -1 }
    if double < -0x1p63 { return 1 }
    let wholeInteger = Int64(double)  // Rounds towards zero; the range was checked above.
    if integer != wholeInteger { return integer < wholeInteger ? -1 : 1 }
    let whole = Double(wholeInteger)  // Exact: from 2^53 on every double is whole.
    return whole == double ? 0 : whole < double ? -1 : 1
  }
}

extension Number {
  /// The 64-bit integer that equals a double; nil if there is none.
  package static func integer(equalTo double: Double) -> Int64? {
    guard double >= -0x1p63, double < 0x1p63 else { return nil }
    let integer = Int64(double)
    return Double(integer) == double ? integer : nil
  }
}

extension Number: Hashable {
  package func hash(into hasher: inout Hasher) {
    switch self {
    case .integer(let value): hasher.combine(value)
    case .double(let value):
      if let integer = Int64(exactly: value) {
        hasher.combine(integer)
      } else {
        hasher.combine(value)
      }
    }
  }
}
