package import DendroTree

/// The members of a JSON object, each with the bytes of its value, which nothing has looked into.
///
/// For messages whose members follow rules of their own: a `null` that counts, keys that are paths.
package struct JSONMembers: Sendable {
  private let bytes: ArraySlice<UInt8>
  private var values: [(name: String, range: Range<Int>)] = []

  /// The most levels of brackets in one value.
  private static let depthLimit = 128

  /// - Returns: nil if the text is no object. What is wrong within a value shows when that is parsed.
  package init?(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    var scanner = Scanner(bytes: bytes, index: bytes.startIndex)
    guard scanner.take(UInt8(ascii: "{")) else { return nil }
    if !scanner.take(UInt8(ascii: "}")) {
      repeat {
        guard let name = scanner.string(), scanner.take(UInt8(ascii: ":")),
          let value = scanner.value()
        else { return nil }
        values.append((name, value))
      } while scanner.take(UInt8(ascii: ","))
      guard scanner.take(UInt8(ascii: "}")) else { return nil }
    }
    guard scanner.isAtEnd else { return nil }
  }

  /// The bytes of a value; of several with the name, the last.
  package subscript(name: String) -> ArraySlice<UInt8>? {
    values.last { $0.name == name }.map { bytes[$0.range] }
  }

  /// The objects of an array; nil if the text is no array of objects.
  package static func objects(_ bytes: ArraySlice<UInt8>) -> [JSONMembers]? {
    var scanner = Scanner(bytes: bytes, index: bytes.startIndex)
    guard scanner.take(UInt8(ascii: "[")) else { return nil }
    var objects: [JSONMembers] = []
    if !scanner.take(UInt8(ascii: "]")) {
      repeat {
        guard let range = scanner.value(), let object = JSONMembers(bytes[range]) else {
          return nil
        }
        objects.append(object)
      } while scanner.take(UInt8(ascii: ","))
      guard scanner.take(UInt8(ascii: "]")) else { return nil }
    }
    return scanner.isAtEnd ? objects : nil
  }

  /// The names of all members.
  package var names: [String] { values.map(\.name) }

  /// An object.
  package func object(_ name: String) -> JSONMembers? { self[name].flatMap { JSONMembers($0) } }

  /// A scalar; nil if there is none, and inside nil for null.
  package func scalar(_ name: String) -> Scalar?? {
    guard let value = self[name], let first = value.first, first != UInt8(ascii: "{"),
      first != UInt8(ascii: "[")
    else { return nil }
    guard let node = value.withUnsafeBytes({ try? JSONParser.parse($0) }) else { return nil }
    return .some(node.scalar)
  }

  package func string(_ name: String) -> String? {
    if case .string(let text)?? = scalar(name) { text } else { nil }
  }

  /// The strings of an array; none if it is something else.
  package func strings(_ name: String) -> [String] {
    guard let value = self[name], value.first == UInt8(ascii: "[") else { return [] }
    guard let node = value.withUnsafeBytes({ try? JSONParser.parse($0) }) else { return [] }
    return node.children.compactMap { if case .string(let text)? = $1.scalar { text } else { nil } }
  }

  package func integer(_ name: String) -> Int64? {
    if case .integer(let number)?? = scalar(name) { number } else { nil }
  }

  package func bool(_ name: String) -> Bool? {
    if case .bool(let value)?? = scalar(name) { value } else { nil }
  }

  private struct Scanner {
    let bytes: ArraySlice<UInt8>
    var index: Int

    mutating func skipSpace() {
      while index < bytes.endIndex, bytes[index] <= UInt8(ascii: " ") { index += 1 }
    }

    var isAtEnd: Bool {
      mutating get {
        skipSpace()
        return index == bytes.endIndex
      }
    }

    mutating func take(_ byte: UInt8) -> Bool {
      skipSpace()
      guard index < bytes.endIndex, bytes[index] == byte else { return false }
      index += 1
      return true
    }

    /// Passes over a string whose opening mark comes next.
    mutating func passString() -> Bool {
      index += 1
      while index < bytes.endIndex {
        switch bytes[index] {
        case UInt8(ascii: "\\"): index += 2
        case UInt8(ascii: "\""):
          index += 1
          return true
        default: index += 1
        }
      }
      return false
    }

    mutating func string() -> String? {
      skipSpace()
      let start = index
      guard index < bytes.endIndex, bytes[index] == UInt8(ascii: "\""), passString() else {
        return nil
      }
      let node = bytes[start..<index].withUnsafeBytes { try? JSONParser.parse($0) }
      if case .string(let text)? = node?.scalar { return text }
      return nil
    }

    /// Passes over a value.
    mutating func value() -> Range<Int>? {
      skipSpace()
      let start = index
      var depth = 0
      while index < bytes.endIndex {
        switch bytes[index] {
        case UInt8(ascii: "\""):
          guard passString() else { return nil }
          continue
        case UInt8(ascii: "{"), UInt8(ascii: "["):
          depth += 1
          if depth > JSONMembers.depthLimit { return nil }
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          if depth == 0 { return start < index ? start..<index : nil }
          depth -= 1
        case UInt8(ascii: ","):
          if depth == 0 { return start < index ? start..<index : nil }
        default: break
        }
        index += 1
      }
      return nil
    }
  }
}
