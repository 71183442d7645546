import DendroTree
import Foundation

/// Encoded values as nodes, by the rules that values from outside follow: `.value`, `.priority` and
/// `.sv` are read first, and errors name the place.
extension ValueReader {
  mutating func node(_ value: EncodedValue) throws(ValidationError) -> Node {
    switch value {
    case .null: return .empty
    case .scalar(.string(let text)): return try string(text)
    case .scalar(let scalar): return Node(scalar)
    case .unsigned(let value): return Node(Scalar(unsigned: value))
    case .decimal(let value): return Node(.double(value.nearestDouble))
    case .keyed(let values): return try branch(values)
    case .unkeyed(let values):
      var builder = NodeBuilder()
      for (index, element) in values.elements.enumerated() {
        try child(String(index), element, &builder)
      }
      return builder.finish()
    case .encoder(let encoder): return try node(encoder.result)
    case .foreign(let value): return try node(value)
    }
  }

  private mutating func branch(_ values: KeyedValues) throws(ValidationError) -> Node {
    if values.hasMetadata {
      // Rare, so these few go the way of any value from outside.
      return try special(
        values.value(".value")?.foundationValue, values.value(".priority")?.foundationValue,
        values.value(".sv")?.foundationValue, count: values.entries.count
      ) { (reader, builder) throws(ValidationError) in
        for entry in values.entries where !Self.isMetadata(entry.name) {
          try reader.child(entry.name, entry.value, &builder)
        }
      }
    }
    var builder = NodeBuilder()
    for entry in values.entries { try child(entry.name, entry.value, &builder) }
    return builder.finish()
  }

  private mutating func child(
    _ name: String, _ value: EncodedValue, _ builder: inout NodeBuilder
  ) throws(ValidationError) {
    try child(name, &builder) { (reader) throws(ValidationError) in try reader.node(value) }
  }
}

extension Draft {
  /// `setValue(from:)`.
  init(setting value: EncodedValue, at path: Path) throws(ValidationError) {
    var reader = ValueReader(outerDepth: path.count)
    let node = try reader.node(value)
    self.init(setting: node, reader.deferred, at: path)
  }
}
