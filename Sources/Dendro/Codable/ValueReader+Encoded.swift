import DendroTree
import Foundation

/// Encoded values, by the rules that values from outside follow: `.value`, `.priority` and
/// `.sv` are read first, and errors name the place.
///
/// What would be read as another value is refused: the tree keeps no empty containers, and no number beyond 64 bits.
extension ValueReader {
  /// A value that is encoded by itself, and is read by itself.
  mutating func readWhole(_ value: EncodedValue) throws(ValidationError) {
    switch value {
    case .keyed, .unkeyed:
      guard !value.isEmpty else {
        throw place.invalid(
          "nothing is left of an empty value, so it could not be read as what it is; removeValue() removes what is there"
        )
      }
    default: break
    }
    try read(value)
  }

  mutating func read(_ value: EncodedValue) throws(ValidationError) {
    switch value {
    case .null: break
    case .scalar(let scalar): append(try place.checked(scalar))
    case .unsigned(let value): builder.append(try place.exact(value))
    case .decimal(let value): builder.append(try place.exact(value))
    case .keyed(let values): try branch(values)
    case .unkeyed(let values): try array(values)
    case .encoder(let encoder): try read(encoder.result)
    case .foreign(let value): try read(value)
    case .emptied(_, .optional):
      throw place.invalid(
        "nothing is left of an optional that is set to an empty value, so it would be read as nil")
    case .emptied(_, .enumCase):
      throw place.invalid(
        "nothing is left of an enum's case that holds an empty value, so it could not be read as that case"
      )
    }
  }

  private mutating func array(_ values: UnkeyedValues) throws(ValidationError) {
    let elements = values.elements
    if let lost = values.firstLost { throw place.lost(String(lost), "element") }
    let branch = builder.beginBranch()
    for (index, element) in elements.enumerated() { try child(String(index), element) }
    _ = builder.endBranch(branch)
  }

  private mutating func branch(_ values: KeyedValues) throws(ValidationError) {
    if values.hasAnyNames, let lost = values.entries.first(where: \.value.isEmpty) {
      throw place.lost(lost.name, "key")
    }
    if values.hasMetadata {
      if let name = values.misplacedName {
        throw place.invalid("the key \(name) could not be read back: use another name for it")
      }
      let priority = try values.value(".priority").map { (value) throws(ValidationError) in
        try place.exact(value)
      }
      if priority.map({ !ValuePlace.isNull($0) }) ?? false, EncodedValue.keyed(values).isEmpty {
        throw place.invalid("nothing is left of an empty value, so its priority would be lost")
      }
      // Rare, so these few go the way of any value from outside.
      return try special(
        values.value(".value")?.foundationValue, priority,
        values.value(".sv")?.foundationValue, count: values.entries.count
      ) { (reader) throws(ValidationError) in
        for entry in values.entries where !Self.isMetadata(entry.name) {
          try reader.child(entry.name, entry.value)
        }
      }
    }
    let branch = builder.beginBranch()
    for entry in values.entries { try child(entry.name, entry.value) }
    _ = builder.endBranch(branch)
  }

  /// A double in an encoded value is finite.
  private static func isStorable(_ scalar: Scalar) -> Bool {
    if case .string(let text) = scalar { return text.utf8.count <= Limits.stringBytes }
    return true
  }

  private mutating func child(
    _ name: String, _ value: EncodedValue
  ) throws(ValidationError) {
    if case .scalar(let scalar) = value, Self.isStorable(scalar), place.depth < Limits.depth,
      builder.beginChild(name)
    {
      append(scalar)
      _ = builder.endChild()
      return
    }
    try child(name) { (reader) throws(ValidationError) in try reader.read(value) }
  }
}

extension UnkeyedValues {
  /// The index of an element that the tree keeps nothing of, and which would not be read as what it is; nil if there is
  /// none.
  var firstLost: Int? {
    // The last element is the one that says how many there are.
    if let last = elements.last, last.isEmpty { return elements.count - 1 }
    if isUnordered { return elements.firstIndex(where: \.isEmpty) }
    if elements.count <= UnkeyedDataContainer.missingMax { return nil }
    let missing = elements.count(where: \.isEmpty)
    return missing >= max(elements.count - missing, UnkeyedDataContainer.missingMax)
      ? elements.firstIndex(where: \.isEmpty) : nil
  }
}

extension ValuePlace {
  fileprivate func lost(_ name: String, _ noun: String) -> ValidationError {
    var below = self
    below.names.append(name)
    return below.invalid("nothing is left of an empty value, so its \(noun) would be lost")
  }

  /// A value as one of Foundation's, if it is a number that is stored as what it is.
  func exact(_ value: EncodedValue) throws(ValidationError) -> Any {
    switch value {
    case .unsigned(let value): try exact(value).foundationValue
    case .decimal(let value): try exact(value).foundationValue
    default: value.foundationValue
    }
  }

  /// An integer above `Int64.max`, if a double is exactly that number.
  fileprivate func exact(_ value: UInt64) throws(ValidationError) -> Scalar {
    guard UInt64(exactly: Double(value)) == value else {
      throw invalid("\(value) is above \(Int64.max), and no double is exactly that number")
    }
    return Scalar(unsigned: value)
  }

  /// A decimal number, if it is read from what is stored as what it is.
  fileprivate func exact(_ value: Decimal) throws(ValidationError) -> Scalar {
    let double = value.nearestDouble
    if double.isFinite, Decimal(string: double.description) == value { return .double(double) }
    if let integer = Int64(value.description) { return .integer(integer) }
    throw invalid(
      "\(value) has more digits than are stored: 15 to 17 of a double, or 64 bits of an integer")
  }
}
