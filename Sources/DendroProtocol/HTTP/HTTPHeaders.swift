/// The header fields of a request or an answer, in their order.
package struct HTTPHeaders: Sendable {
  /// One field.
  package struct Field: Sendable {
    /// As it was spelled.
    package let name: String
    package let value: String
    /// The name in lower case.
    fileprivate let key: String
  }

  package private(set) var fields: [Field] = []

  package init() {}

  package init(_ fields: [(String, String)]) {
    for (name, value) in fields { append(name, value) }
  }

  package mutating func append(_ name: String, _ value: String) {
    fields.append(Field(name: name, value: value, key: name.lowercased()))
  }

  /// The value of the first field with this name.
  ///
  /// - Parameter name: in lower case.
  package subscript(name: String) -> String? { fields.first { $0.key == name }?.value }

  /// The values of all fields with this name.
  ///
  /// - Parameter name: in lower case.
  package func values(_ name: String) -> [String] { fields.filter { $0.key == name }.map(\.value) }

  /// Replaces the value of the first field with this name, given in lower case; does nothing without one.
  package mutating func replace(_ name: String, by value: String) {
    guard let index = fields.firstIndex(where: { $0.key == name }) else { return }
    fields[index] = Field(name: fields[index].name, value: value, key: name)
  }

  /// Whether a field may have this name.
  package static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(isOfName)
  }

  /// Whether the name of a field, or a method, may have the byte.
  package static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"),
      UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
      UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
