import DendroTree
import Foundation

/// Swift values of a scalar; nil where it is of another type.
extension Scalar {
  /// Also of a double that has the value of an integer.
  var int: Int? {
    switch self {
    case .integer(let value): Int(exactly: value)
    case .double(let value): Int(exactly: value)
    case .bool, .string, .bytes: nil
    }
  }

  /// The nearest double of an integer.
  var double: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    case .bool, .string, .bytes: nil
    }
  }

  var string: String? { if case .string(let value) = self { value } else { nil } }

  var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
}

/// Numbers and booleans in an `Any`. Doubles are taken as they are: whether they are finite is for the
/// caller to check.
extension Scalar {
  /// Distinguishes bools from numbers only by `objCType`: on Linux `as? Bool` succeeds for any number that
  /// is 0 or 1.
  init(_ number: NSNumber) {
    #if canImport(Darwin)
      if CFGetTypeID(number) == CFBooleanGetTypeID() {
        self = .bool(number.boolValue)
        return
      }
      let type = number.objCType[0]
    #else
      let type = number.objCType[0]
      if type == Int8(ascii: "c") {
        self = .bool(number.boolValue)
        return
      }
    #endif
    switch type {
    case Int8(ascii: "B"): self = .bool(number.boolValue)
    case Int8(ascii: "d"):
      self = .double((number as? NSDecimalNumber)?.decimalValue.nearestDouble ?? number.doubleValue)
    case Int8(ascii: "f"): self = .double(number.doubleValue)
    case Int8(ascii: "Q"): self.init(unsigned: number.uint64Value)
    default: self = .integer(number.int64Value)
    }
  }

  /// A boolean or number of the standard library or Foundation; nil for anything else.
  init?(native value: Any) {
    switch value {
    case let value as Int64: self = .integer(value)
    case let value as Int32: self = .integer(Int64(value))
    case let value as Int16: self = .integer(Int64(value))
    case let value as Int8: self = .integer(Int64(value))
    case let value as UInt64: self.init(unsigned: value)
    case let value as UInt: self.init(unsigned: UInt64(value))
    case let value as UInt32: self = .integer(Int64(value))
    case let value as UInt16: self = .integer(Int64(value))
    case let value as UInt8: self = .integer(Int64(value))
    case let value as Float: self = .double(Double(value))
    case let value as CGFloat: self = .double(Double(value))
    case let value as Decimal: self = .double(value.nearestDouble)
    case let value as Int: self = .integer(Int64(value))
    case let value as Double: self = .double(value)
    case let value as Bool: self = .bool(value)
    default: return nil
    }
  }

  /// An integer; above `Int64.max` the nearest double.
  init(unsigned value: UInt64) {
    self = Int64(exactly: value).map(Scalar.integer) ?? .double(Double(value))
  }
}

extension Decimal {
  /// Read from the digits: `NSDecimalNumber`'s own conversion is off by some units in the last place.
  var nearestDouble: Double { isNaN ? .nan : Double(description) ?? .nan }
}

extension Int8 {
  fileprivate init(ascii character: Unicode.Scalar) { self = Int8(UInt8(ascii: character)) }
}
