/// The header fields of a request or an answer, in their order.
package struct HTTPHeaders: Sendable {
  /// Names in lower case.
  package private(set) var fields: [(name: String, value: String)] = []

  package init() {}

  package init(_ fields: [(String, String)]) {
    for (name, value) in fields { append(name, value) }
  }

  package mutating func append(_ name: String, _ value: String) {
    fields.append((name.lowercased(), value))
  }

  /// The value of the first field with this name.
  ///
  /// - Parameter name: in lower case.
  package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }
}
