extension ModelTree: CustomStringConvertible {
  /// Everything, with 1 and 1.0 apart: equal texts are equal byte for byte.
  package var description: String {
    var text = scalar.map { "\($0)" } ?? ""
    if !children.isEmpty {
      let sorted = children.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      text +=
        "{"
        + sorted.map { "\(String(decoding: $0.key, as: UTF8.self)):\($0.value)" }
        .joined(separator: ",") + "}"
    }
    return priority.map { "\(text)!\($0)" } ?? text
  }
}
