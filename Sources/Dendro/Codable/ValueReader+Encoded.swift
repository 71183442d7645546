import DendroTree
import Foundation

/// Encoded values, by the rules that values from outside follow: `.value`, `.priority` and
/// `.sv` are read first, and errors name the place.
extension ValueReader {
  mutating func read(_ value: EncodedValue) throws(ValidationError) {
    switch value {
    case .null: break
    case .scalar(let scalar): append(try place.checked(scalar))
    case .unsigned(let value): builder.append(Scalar(unsigned: value))
    case .decimal(let value): builder.append(.double(value.nearestDouble))
    case .keyed(let values): try branch(values)
    case .unkeyed(let values):
      let branch = builder.beginBranch()
      for (index, element) in values.elements.enumerated() {
        try child(String(index), element)
      }
      _ = builder.endBranch(branch)
    case .encoder(let encoder): try read(encoder.result)
    case .foreign(let value): try read(value)
    }
  }

  private mutating func branch(_ values: KeyedValues) throws(ValidationError) {
    if values.hasMetadata {
      // Rare, so these few go the way of any value from outside.
      return try special(
        values.value(".value")?.foundationValue, values.value(".priority")?.foundationValue,
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

  private mutating func child(
    _ name: String, _ value: EncodedValue
  ) throws(ValidationError) {
    try child(name) { (reader) throws(ValidationError) in try reader.read(value) }
  }
}
