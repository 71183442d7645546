import DendroTree

extension ModelTree: CustomStringConvertible {
  /// Everything, with 1 and 1.0 apart. Trees whose texts are equal are equal byte for byte: what is not ASCII stands as
  /// bytes, since Swift finds texts equal that are only canonically equal.
  package var description: String {
    var text = ""
    append(to: &text)
    return text
  }

  private func append(to text: inout String) {
    if let scalar { Self.append(scalar, to: &text) }
    if !children.isEmpty {
      var separator = "{"
      for (key, child) in children.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        text += separator
        Self.append(key, to: &text)
        text += ":"
        child.append(to: &text)
        separator = ","
      }
      text += "}"
    }
    if let priority {
      text += "!"
      Self.append(priority, to: &text)
    }
  }

  private static func append(_ bytes: [UInt8], to text: inout String) {
    text += bytes.allSatisfy { $0 < 0x80 } ? String(decoding: bytes, as: UTF8.self) : "\(bytes)"
  }

  /// Looks at no type as it runs, which takes long.
  private static func append(_ scalar: Scalar, to text: inout String) {
    switch scalar {
    case .bool(let value): text += "bool(\(value))"
    case .integer(let value): text += "integer(\(value))"
    case .double(let value): text += "double(\(value))"
    case .string(let value):
      text += "string(\(value.utf8.count) "
      append(Array(value.utf8), to: &text)
      text += ")"
    case .bytes(let value): text += "bytes(\(value))"
    }
  }
}
