import DendroTree
import Foundation

/// Which values are not left to their own `encode(to:)`.
extension ValueEncoder {
  /// What a value at a key of this one encodes as; an empty dictionary if it encodes nothing.
  @inline(__always)
  func encoded<T: Encodable>(_ value: T, _ key: (any CodingKey)?) throws -> EncodedValue {
    // The commonest here, where the compiler drops the comparisons for a type that it knows.
    if !run.hasPassthroughTypes {
      if T.self == String.self { return .scalar(.string(value as! String)) }
      if T.self == Int.self { return .scalar(.integer(Int64(value as! Int))) }
      if T.self == Double.self { return try encoded(value as! Double, at: key) }
      if T.self == Bool.self { return .scalar(.bool(value as! Bool)) }
    }
    return try encodedIfAny(value, key) ?? .keyed(KeyedValues())
  }

  /// `encoded(_:_:)`, but nil if the value encodes nothing.
  func encodedIfAny<T: Encodable>(_ value: T, _ key: (any CodingKey)?) throws -> EncodedValue? {
    if run.hasPassthroughTypes, run.options.passthroughTypes.isPassthroughType(value) {
      return .foreign(value)
    }
    if let known = try known(value, key) { return known }
    let child = try below(
      key, value,
      keysAreData: run.convertsKeys && T.self is any StringKeyedDictionary.Type)
    try value.encode(to: child)
    if child.value == nil { return nil }
    let result = child.result
    if result.isEmpty { return Self.kept(result, of: value) }
    // It makes a leaf, which is not read as a container.
    if case .keyed(let values) = result, values.hasMetadata,
      values.value(".value")?.isContainer == false, T.self is any Decodable.Type
    {
      values.misplacedName = ".value"
    }
    if case .unkeyed(let values) = result { values.isUnordered = value is any UnorderedValue }
    return result
  }

  /// What is written of a value that encodes as something empty.
  @inline(never)
  private static func kept<T>(_ empty: EncodedValue, of value: T) -> EncodedValue {
    if let optional = value as? any OptionalValue {
      return optional.wrapped == nil ? empty : .emptied(empty, .optional)
    }
    if case .null = empty { return empty }
    let isOfCase = if case .keyed(let values) = empty { values.isOfCase } else { false }
    // One that passes its encoder on encodes as what it holds.
    guard isEnum(value, within: isOfCase ? 3 : 0) else { return empty }
    // As the compiler encodes a case. What of its values would be lost is refused where it stands.
    if case .keyed(let values) = empty, isOfCase {
      values.keepCase()
      return empty
    }
    return .emptied(empty, .enumCase)
  }

  /// Whether a value is an enum, or holds one up to some levels below.
  private static func isEnum(_ value: Any, within levels: Int) -> Bool {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .enum { return true }
    return levels > 0 && mirror.children.contains { isEnum($0.value, within: levels - 1) }
  }

  /// A type that is not left to its own `encode(to:)`; nil for all others.
  ///
  /// Apart from what recurses, since it needs much of the stack.
  @inline(never)
  private func known<T: Encodable>(
    _ value: T, _ key: (any CodingKey)?
  ) throws -> EncodedValue? {
    if let scalar = try scalar(value, key) ?? integer(value, key) { return scalar }
    if T.self == Date.self { return try encoded(date: value as! Date, key) }
    if T.self == Data.self { return try encoded(data: value as! Data, key) }
    if T.self == Database.Value.self { return try encoded(value as! Database.Value, key) }
    return nil
  }

  private func scalar<T>(_ value: T, _ key: (any CodingKey)?) throws -> EncodedValue? {
    if T.self == String.self { return .scalar(.string(value as! String)) }
    if T.self == Bool.self { return .scalar(.bool(value as! Bool)) }
    if T.self == Double.self { return try encoded(value as! Double, at: key) }
    if T.self == Float.self { return try encoded(Double(value as! Float), at: key) }
    if T.self == URL.self { return .scalar(.string((value as! URL).absoluteString)) }
    if T.self == Decimal.self {
      let value = value as! Decimal
      return value.isNaN ? try encoded(Double.nan, at: key) : .decimal(value)
    }
    return nil
  }

  private func integer<T>(_ value: T, _ key: (any CodingKey)?) throws -> EncodedValue? {
    if T.self == Int.self { return .scalar(.integer(Int64(value as! Int))) }
    if T.self == Int64.self { return .scalar(.integer(value as! Int64)) }
    if T.self == Int32.self { return .scalar(.integer(Int64(value as! Int32))) }
    if T.self == Int16.self { return .scalar(.integer(Int64(value as! Int16))) }
    if T.self == Int8.self { return .scalar(.integer(Int64(value as! Int8))) }
    if T.self == UInt.self { return encoded(UInt64(value as! UInt)) }
    if T.self == UInt64.self { return encoded(value as! UInt64) }
    if T.self == UInt32.self { return .scalar(.integer(Int64(value as! UInt32))) }
    if T.self == UInt16.self { return .scalar(.integer(Int64(value as! UInt16))) }
    if T.self == UInt8.self { return .scalar(.integer(Int64(value as! UInt8))) }
    if T.self == Int128.self || T.self == UInt128.self {
      throw EncodingError.invalidValue(
        value,
        .init(
          codingPath: path(key),
          debugDescription: "integers of 128 bits cannot be stored; those of 64 bits can"))
    }
    return nil
  }

  private func encoded(_ value: UInt64) -> EncodedValue {
    Int64(exactly: value).map { .scalar(.integer($0)) } ?? .unsigned(value)
  }

  private func encoded(_ value: Double, at key: (any CodingKey)?) throws -> EncodedValue {
    if value.isFinite { return .scalar(.double(value)) }
    switch run.options.floats {
    case .throw:
      throw EncodingError.invalidValue(
        value,
        .init(
          codingPath: path(key),
          debugDescription:
            "\(value) cannot be stored; set nonConformingFloatEncodingStrategy to store a string"))
    case .convertToString(let positiveInfinity, let negativeInfinity, let nan):
      return .scalar(
        .string(value.isNaN ? nan : value == .infinity ? positiveInfinity : negativeInfinity))
    }
  }

  private func encoded(
    _ value: Database.Value, _ key: (any CodingKey)?
  ) throws -> EncodedValue {
    if let encoded = EncodedValue(value) { return encoded }
    throw EncodingError.invalidValue(
      value,
      .init(
        codingPath: path(key),
        debugDescription: CodingDepth.excess))
  }

  private func encoded(date: Date, _ key: (any CodingKey)?) throws -> EncodedValue {
    switch run.options.dates {
    case .deferredToDate: return try encoded(date.timeIntervalSinceReferenceDate, at: key)
    case .secondsSince1970: return try encoded(date.timeIntervalSince1970, at: key)
    case .millisecondsSince1970: return try encoded(1000 * date.timeIntervalSince1970, at: key)
    case .iso8601:
      guard date.hasFourDigitYear else {
        throw refused(date, "lies outside the years 0 to 9999, which ISO 8601 writes", key)
      }
      return .scalar(.string(date.formatted(.iso8601)))
    case .formatted(let formatter):
      // Of what is no time, or too far away, formatters make an empty string.
      let text = formatter.string(from: date)
      if text.isEmpty { throw refused(date, "is none that the date formatter writes", key) }
      return .scalar(.string(text))
    case .custom(let encode):
      let child = try below(key, date)
      try encode(date, child)
      return child.result
    }
  }

  /// The error has the date as its seconds: Foundation traps if it describes a date that is NaN.
  private func refused(
    _ date: Date, _ reason: String, _ key: (any CodingKey)?
  ) -> EncodingError {
    let seconds = date.timeIntervalSince1970
    return .invalidValue(
      seconds,
      .init(
        codingPath: path(key),
        debugDescription: "the date \(seconds) seconds after the beginning of 1970 \(reason)"))
  }

  private func encoded(data: Data, _ key: (any CodingKey)?) throws -> EncodedValue {
    switch run.options.data {
    case .deferredToData:
      let child = try below(key, data)
      try data.encode(to: child)
      return child.result
    case .base64: return .scalar(.string(data.base64EncodedString()))
    case .blob: return .foreign(data)
    case .custom(let encode):
      let child = try below(key, data)
      try encode(data, child)
      return child.result
    }
  }
}

/// What encodes its elements in an order that is left to chance.
protocol UnorderedValue {}

extension Set: UnorderedValue {}

extension Dictionary: UnorderedValue {}

/// A dictionary whose keys are data: no strategy converts them.
protocol StringKeyedDictionary {}

extension Dictionary: StringKeyedDictionary where Key == String {}
