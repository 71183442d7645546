import DendroTree

/// The text of a JSON object, its members in the order in which they are added.
struct ObjectText {
  private var members: [String] = []

  /// - Parameter json: the text of the value.
  mutating func add(_ name: String, json: String) { members.append("\"\(name)\":\(json)") }

  mutating func add(_ name: String, _ text: String) { add(name, json: Self.quoted(text)) }

  mutating func add(_ position: TextPosition) {
    add("line", json: "\(position.line)")
    add("column", json: "\(position.column)")
  }

  var text: String { "{\(members.joined(separator: ","))}" }

  static func array(_ elements: [String]) -> String { "[\(elements.joined(separator: ","))]" }

  private static func quoted(_ text: String) -> String {
    var bytes: [UInt8] = []
    JSONText.append(string: text, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
