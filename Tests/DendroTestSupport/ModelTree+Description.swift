extension ModelTree: CustomStringConvertible {
  /// Everything, with 1 and 1.0 apart: equal texts are equal byte for byte.
  package var description: String {
    var text = ""
    append(to: &text)
    return text
  }

  private func append(to text: inout String) {
    if let scalar { text += "\(scalar)" }
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
    if let priority { text += "!\(priority)" }
  }
}
