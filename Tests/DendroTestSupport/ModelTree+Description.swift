import DendroTree

extension ModelTree: CustomStringConvertible {
  /// Everything, with 1 and 1.0 apart: equal texts are equal byte for byte.
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
        text += String(decoding: key, as: UTF8.self)
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

  /// Looks at no type as it runs, which takes long.
  private static func append(_ scalar: Scalar, to text: inout String) {
    switch scalar {
    case .bool(let value): text += "bool(\(value))"
    case .integer(let value): text += "integer(\(value))"
    case .double(let value): text += "double(\(value))"
    case .string(let value):
      text += "string(\(value.utf8.count) "
      text += value
      text += ")"
    case .bytes(let value): text += "bytes(\(value))"
    }
  }
}
