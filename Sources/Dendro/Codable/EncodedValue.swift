import DendroTree
import Foundation

/// What a value encodes as, before it is known whether it becomes a node or Foundation's objects.
enum EncodedValue {
  case null
  /// A double here is finite.
  case scalar(Scalar)
  /// Above `Int64.max`.
  case unsigned(UInt64)
  /// Not NaN.
  case decimal(Decimal)
  case keyed(KeyedValues)
  case unkeyed(UnkeyedValues)
  /// Of a superclass: encoded into after it was put here.
  case encoder(ValueEncoder)
  /// Left as it is: data as a blob, or what the passthrough resolver named.
  case foreign(Any)

  /// Dictionaries, arrays, `NSNumber`, `String` and `NSNull`.
  var foundationValue: Any {
    switch self {
    case .null: return NSNull()
    case .scalar(let scalar): return scalar.foundationValue
    case .unsigned(let value): return NSNumber(value: value)
    case .decimal(let value): return NSDecimalNumber(decimal: value)
    case .keyed(let values):
      var dictionary = [String: Any](minimumCapacity: values.entries.count)
      for entry in values.entries { dictionary[entry.name] = entry.value.foundationValue }
      return dictionary
    case .unkeyed(let values): return values.elements.map(\.foundationValue)
    case .encoder(let encoder): return encoder.result.foundationValue
    case .foreign(let value): return value
    }
  }
}

/// What a keyed container holds. Of several values at one key the last holds.
final class KeyedValues {
  private(set) var entries: [(name: String, value: EncodedValue)] = []
  /// Where each name stands; made once a nested container is asked for. `Scalar` compares strings
  /// literally.
  private var places: [Scalar: Int]?

  /// Whether there is a name that begins with a dot.
  private(set) var hasMetadata = false

  func append(_ name: String, _ value: EncodedValue) {
    if name.utf8.first == UInt8(ascii: ".") { hasMetadata = true }
    places?[.string(name)] = entries.count
    entries.append((name, value))
  }

  /// The last value at a name.
  func value(_ name: String) -> EncodedValue? {
    if places == nil {
      places = Dictionary(
        entries.enumerated().map { (.string($1.name), $0) }, uniquingKeysWith: { $1 })
    }
    return places?[.string(name)].map { entries[$0].value }
  }
}

/// What an unkeyed container holds.
final class UnkeyedValues {
  var elements: [EncodedValue] = []
}
