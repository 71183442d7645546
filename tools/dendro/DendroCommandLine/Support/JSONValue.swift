import DendroTree

/// JSON that the tool itself says, its members in the order that they were given.
indirect enum JSONValue {
  case null
  case bool(Bool)
  case integer(Int64)
  case unsigned(UInt64)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([(String, JSONValue)])
  case node(Node, JSONStyle)

  static func count(_ value: Int) -> JSONValue { .integer(Int64(value)) }

  var text: String {
    var text = ""
    write(to: &text)
    return text
  }

  /// As `JSONStyle.isPretty` writes nodes: an object's members one a line.
  var prettyText: String {
    switch self {
    case .node(let node, var style):
      style.isPretty = true
      return JSONWriter.string(node, style: style)
    case .object(let members) where !members.isEmpty:
      let lines = members.map { name, value in
        // Line ends are escaped in strings, so that these are between members.
        let value = value.prettyText.split(separator: "\n").joined(separator: "\n  ")
        return "  \(JSONValue.string(name).text): \(value)"
      }
      return "{\n" + lines.joined(separator: ",\n") + "\n}"
    default: return text
    }
  }

  private func write(to text: inout String) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .integer(let value): text += String(value)
    case .unsigned(let value): text += String(value)
    case .number(let value): text += JSONWriter.string(Node(.double(value)))
    case .string(let value): text += JSONWriter.string(Node(.string(value)))
    case .node(let node, let style): text += JSONWriter.string(node, style: style)
    case .array(let elements):
      text += "["
      for (index, element) in elements.enumerated() {
        if index > 0 { text += "," }
        element.write(to: &text)
      }
      text += "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { text += "," }
        JSONValue.string(member.0).write(to: &text)
        text += ":"
        member.1.write(to: &text)
      }
      text += "}"
    }
  }
}
