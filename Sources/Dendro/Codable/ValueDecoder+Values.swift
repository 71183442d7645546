import DendroTree
import Foundation

/// Which values are not left to their own `init(from:)`.
extension ValueDecoder {
  /// The value at a key of this one.
  @inline(__always)
  func decoded<T: Decodable>(
    _ type: T.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> T {
    // The commonest here, where the compiler drops the comparisons for a type that it knows.
    if !run.hasPassthroughTypes, case .scalar(let scalar) = value {
      if T.self == String.self, case .string(let text) = scalar { return text as! T }
      if T.self == Bool.self, case .bool(let flag) = scalar { return flag as! T }
      if T.self == Double.self, case .double(let number) = scalar { return number as! T }
      if T.self == Int.self, case .integer(let integer) = scalar,
        let integer = Int(exactly: integer)
      {
        return integer as! T
      }
    }
    return try decodedInFull(type, value, key)
  }

  private func decodedInFull<T: Decodable>(
    _ type: T.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> T {
    if run.hasPassthroughTypes, let passed = passed(type, value) { return passed }
    if let known = try known(type, value, key) { return known }
    let keysAreData = run.convertsKeys && T.self is any StringKeyedDictionary.Type
    return try T(from: below(value, key, keysAreData: keysAreData))
  }

  /// A type that is not left to its own `init(from:)`; nil for all others.
  ///
  /// Apart from what recurses, since it needs much of the stack.
  @inline(never)
  private func known<T: Decodable>(
    _ type: T.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> T? {
    if let known = try scalar(type, value, key) ?? integer(type, value, key) { return known as? T }
    if T.self == Date.self { return try date(value, key) as? T }
    if T.self == Data.self { return try data(value, key) as? T }
    if T.self == Database.Value.self { return try Database.Value(value, self, key) as? T }
    return nil
  }

  private func passed<T>(_ type: T.Type, _ value: DecodedValue) -> T? {
    let object = value.foundationValue
    guard run.options.passthroughTypes.isPassthroughType(object) else { return nil }
    return object as? T
  }

  private func scalar<T>(
    _ type: T.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> Any? {
    if T.self == String.self { return try string(type, value, key) }
    if T.self == Bool.self {
      guard case .scalar(.bool(let flag)) = value else { throw mismatch(type, value, key) }
      return flag
    }
    if T.self == Double.self { return try double(type, value, key) }
    if T.self == Float.self {
      let double = try double(type, value, key)
      let float = Float(double)
      guard float.isFinite || !double.isFinite else {
        throw corrupt("\(double) is out of the range of Float", key)
      }
      return float
    }
    if T.self == URL.self {
      let text = try string(type, value, key)
      guard let url = URL(string: text) else { throw corrupt("a string that is no URL", key) }
      return url
    }
    if T.self == Decimal.self { return try decimal(value, key) }
    return nil
  }

  private func string(
    _ type: Any.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> String {
    guard case .scalar(.string(let text)) = value else { throw mismatch(type, value, key) }
    return text
  }

  private func double(
    _ type: Any.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> Double {
    switch value {
    case .scalar(.double(let number)): return number
    case .scalar(.integer(let integer)): return Double(integer)
    case .unsigned(let integer): return Double(integer)
    case .decimal(let number): return number.nearestDouble
    case .scalar(.string(let text)):
      if case .convertFromString(let positive, let negative, let nan) = run.options.floats {
        if text == positive { return .infinity }
        if text == negative { return -.infinity }
        if text == nan { return .nan }
      }
    default: break
    }
    throw mismatch(type, value, key)
  }

  private func decimal(_ value: DecodedValue, _ key: (any CodingKey)?) throws -> Decimal {
    switch value {
    case .scalar(.integer(let integer)): return Decimal(integer)
    case .unsigned(let integer): return Decimal(integer)
    case .decimal(let number): return number
    case .scalar(.double(let number)):
      // By its shortest digits, so that 0.1 is 0.1.
      guard number.isFinite, let decimal = Decimal(string: number.description), !decimal.isNaN
      else {
        throw corrupt("\(number) is out of the range of Decimal", key)
      }
      return decimal
    default: throw mismatch(Decimal.self, value, key)
    }
  }

  private func integer<T>(
    _ type: T.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> Any? {
    if T.self == Int.self { return try exactly(Int.self, value, key) }
    if T.self == Int64.self { return try exactly(Int64.self, value, key) }
    if T.self == Int32.self { return try exactly(Int32.self, value, key) }
    if T.self == Int16.self { return try exactly(Int16.self, value, key) }
    if T.self == Int8.self { return try exactly(Int8.self, value, key) }
    if T.self == UInt.self { return try exactly(UInt.self, value, key) }
    if T.self == UInt64.self { return try exactly(UInt64.self, value, key) }
    if T.self == UInt32.self { return try exactly(UInt32.self, value, key) }
    if T.self == UInt16.self { return try exactly(UInt16.self, value, key) }
    if T.self == UInt8.self { return try exactly(UInt8.self, value, key) }
    if T.self == Int128.self || T.self == UInt128.self {
      throw DecodingError.typeMismatch(
        type,
        .init(
          codingPath: path(key),
          debugDescription: "integers of 128 bits cannot be stored; those of 64 bits can"))
    }
    return nil
  }

  private func exactly<I: FixedWidthInteger>(
    _ type: I.Type, _ value: DecodedValue, _ key: (any CodingKey)?
  ) throws -> I {
    let integer: I?
    let shown: String
    switch value {
    case .scalar(.integer(let number)): (integer, shown) = (I(exactly: number), "\(number)")
    case .scalar(.double(let number)): (integer, shown) = (I(exactly: number), "\(number)")
    case .unsigned(let number): (integer, shown) = (I(exactly: number), "\(number)")
    case .decimal(let number): (integer, shown) = (I(number.description), "\(number)")
    default: throw mismatch(type, value, key)
    }
    guard let integer else { throw corrupt("\(shown) does not fit in \(type)", key) }
    return integer
  }
}

// MARK: - Dates and data

extension ValueDecoder {
  private func date(_ value: DecodedValue, _ key: (any CodingKey)?) throws -> Date {
    switch run.options.dates {
    case .deferredToDate:
      return Date(timeIntervalSinceReferenceDate: try double(Date.self, value, key))
    case .secondsSince1970:
      return Date(timeIntervalSince1970: try double(Date.self, value, key))
    case .millisecondsSince1970:
      return Date(timeIntervalSince1970: try double(Date.self, value, key) / 1000)
    case .iso8601:
      let text = try string(Date.self, value, key)
      guard let date = try? Date(text, strategy: .iso8601) else {
        throw corrupt("a string that is no date of ISO 8601", key)
      }
      return date
    case .formatted(let formatter):
      guard let date = formatter.date(from: try string(Date.self, value, key)) else {
        throw corrupt("a string that the date formatter does not read", key)
      }
      return date
    case .custom(let decode): return try decode(below(value, key))
    }
  }

  private func data(_ value: DecodedValue, _ key: (any CodingKey)?) throws -> Data {
    switch run.options.data {
    case .deferredToData: return try Data(from: below(value, key))
    case .base64:
      guard let data = Data(base64Encoded: try string(Data.self, value, key)) else {
        throw corrupt("a string that is no Base64", key)
      }
      return data
    case .blob:
      guard case .foreign(let object) = value, let data = object as? Data else {
        throw mismatch(Data.self, value, key)
      }
      return data
    case .custom(let decode): return try decode(below(value, key))
    }
  }
}
