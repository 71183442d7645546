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
  /// What is not nothing, but of which the tree keeps nothing, so that it would be read as something else.
  indirect case emptied(EncodedValue, Emptied)

  enum Emptied {
    /// An optional that is set.
    case optional
    /// A case of an enum that encodes itself.
    case enumCase
  }

  /// Whether the tree keeps nothing of it.
  var isEmpty: Bool {
    switch self {
    case .null: true
    case .scalar, .unsigned, .decimal, .foreign, .emptied: false
    case .keyed(let values):
      // A priority is kept with data only.
      values.entries.allSatisfy {
        $0.value.isEmpty || (values.hasMetadata && $0.name == ".priority")
      }
    case .unkeyed(let values): values.elements.allSatisfy(\.isEmpty)
    case .encoder(let encoder): encoder.result.isEmpty
    }
  }

  /// Whether nothing at its place is read as what it is: an empty container, or one of such properties.
  var isReadFromNothing: Bool {
    switch self {
    case .null: true
    case .scalar, .unsigned, .decimal, .foreign, .emptied: false
    case .keyed(let values):
      values.entries.allSatisfy { !values.hasAnyNames && $0.value.isReadFromNothing }
    case .unkeyed(let values): values.elements.isEmpty
    case .encoder(let encoder): encoder.result.isReadFromNothing
    }
  }

  var isContainer: Bool {
    switch self {
    case .keyed, .unkeyed, .encoder, .emptied: true
    case .null, .scalar, .unsigned, .decimal, .foreign: false
    }
  }

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
    case .emptied(let value, _): return value.foundationValue
    }
  }
}

/// What a keyed container holds. Of several values at one key the last holds.
final class KeyedValues {
  // No access to one of these contains another: so none is checked at run time, once for each property.
  @exclusivity(unchecked) private(set) var entries: [(name: String, value: EncodedValue)] = []
  /// Where each name stands; made once a nested container is asked for. `Scalar` compares strings
  /// literally.
  @exclusivity(unchecked) private var places: [Scalar: Int]?

  /// Whether there is a name that begins with a dot.
  @exclusivity(unchecked) private(set) var hasMetadata = false
  /// Whether the names are data, so that one without a value would be lost. Known once there may be such a name.
  @exclusivity(unchecked) var hasAnyNames = false
  /// A name that is none of data, and that no decoder would read back from here.
  var misplacedName: String?
  /// Whether this is a container that was asked for at a key, as for the values of an enum's case.
  let isNested: Bool

  init(isNested: Bool = false) {
    self.isNested = isNested
    // Most have as many at most: one allocation in place of four.
    entries.reserveCapacity(8)
  }

  /// Whether it looks like a case of an enum as the compiler encodes it: one container with the case's values.
  var isOfCase: Bool {
    guard entries.count == 1, case .keyed(let values) = entries[0].value else { return false }
    return values.isNested
  }

  /// Gives a case of an enum that has no values, or only empty ones, `true` in place of them: an empty container is
  /// nothing in the tree.
  func keepCase() {
    guard entries[0].value.isReadFromNothing else { return }
    entries[0].value = .scalar(.bool(true))
  }

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
  /// Whether the order of the elements is left to chance, as that of a set.
  var isUnordered = false
}
