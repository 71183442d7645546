/// The target of a request: its path, and the items of its query.
package struct RequestTarget: Sendable {
  /// Percent-decoded.
  package let path: String
  /// Percent-decoded, in their order; a name without `=` has an empty value.
  package let items: [(name: String, value: String)]

  /// - Parameter text: as in the request line: `/a/b.json?print=pretty`.
  /// - Throws: `RESTError` if an escape is no escape, or the path is not UTF-8.
  package init(_ text: String) throws(RESTError) {
    let bytes = Array(text.utf8)
    let mark = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
    guard let path = Self.decoded(bytes[..<mark], plusIsSpace: false) else {
      throw .badRequest("Invalid path: Invalid token in path")
    }
    self.path = path
    var items: [(String, String)] = []
    for item in bytes[mark...].dropFirst().split(separator: UInt8(ascii: "&")) {
      let equals = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
      guard let name = Self.decoded(item[..<equals], plusIsSpace: true),
        let value = Self.decoded(item[equals...].dropFirst(), plusIsSpace: true)
      else { throw .badRequest("Invalid query: a parameter is not percent-encoded UTF-8") }
      items.append((name, value))
    }
    self.items = items
  }

  /// The value of the first item with this name.
  package subscript(name: String) -> String? { items.first { $0.name == name }?.value }

  /// The text of a target in which the values of some parameters are left out. A parameter whose name cannot be decoded
  /// may be one of them.
  package static func text(
    of text: String, withoutValuesOf isLeftOut: (String) -> Bool
  ) -> String {
    let bytes = Array(text.utf8)
    guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else { return text }
    var shown = bytes[...mark]
    for item in bytes[(mark + 1)...].split(
      separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    {
      if item.startIndex > mark + 1 { shown.append(UInt8(ascii: "&")) }
      let name = item.prefix { $0 != UInt8(ascii: "=") }
      let decoded = decoded(name, plusIsSpace: true)
      shown += decoded.map(isLeftOut) ?? true ? name + Array("=…".utf8) : item
    }
    return String(decoding: shown, as: UTF8.self)
  }

  /// Decodes percent-encoded UTF-8 once; nil if it is not that.
  private static func decoded(_ bytes: ArraySlice<UInt8>, plusIsSpace: Bool) -> String? {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      switch bytes[index] {
      case UInt8(ascii: "%"):
        guard bytes.endIndex - index > 2, let high = digit(bytes[index + 1]),
          let low = digit(bytes[index + 2])
        else { return nil }
        result.append(high << 4 | low)
        index += 3
      case UInt8(ascii: "+") where plusIsSpace:
        result.append(UInt8(ascii: " "))
        index += 1
      case let byte:
        result.append(byte)
        index += 1
      }
    }
    return String(validating: result, as: UTF8.self)
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
