package import DendroTree

/// One end of a query's range as clients send it: a value, and perhaps the key of a child.
package struct QueryBound: Sendable {
  /// Nil for null.
  package var value: Scalar?
  package var key: String?

  /// The keys that stand below and above all others.
  static let lowestKey = "[MIN_NAME]"
  static let highestKey = "[MAX_NAME]"

  private static let error = RESTError.badRequest("Constraint index field must be a JSON primitive")

  package init(value: Scalar?, key: String?) {
    self.value = value
    self.key = key
  }

  /// - Parameter text: JSON: a primitive, or a primitive and a string with a comma between them.
  package init(_ text: String) throws(RESTError) {
    let bytes = Array(text.utf8)
    let comma = Self.endOfFirstValue(bytes)
    value = try Self.primitive(String(decoding: bytes[..<comma], as: UTF8.self))
    guard comma < bytes.count else { return }
    let rest = String(decoding: bytes[(comma + 1)...], as: UTF8.self)
    guard case .string(let key)? = try Self.primitive(rest) else { throw Self.error }
    self.key = key
  }

  /// The index of the comma after the first value, or the number of bytes.
  private static func endOfFirstValue(_ bytes: [UInt8]) -> Int {
    var isString = false
    var isEscaped = false
    for (index, byte) in bytes.enumerated() {
      if isEscaped {
        isEscaped = false
      } else if isString, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isString.toggle()
      } else if byte == UInt8(ascii: ","), !isString {
        return index
      }
    }
    return bytes.count
  }

  /// Reads a string, a number, a boolean or null.
  static func primitive(_ text: String) throws(RESTError) -> Scalar? {
    let first = text.utf8.first { $0 > UInt8(ascii: " ") }
    guard first != UInt8(ascii: "{"), first != UInt8(ascii: "["),
      let node = try? JSONParser.parse(text)
    else { throw error }
    return node.scalar
  }

  /// - Returns: nil if nothing is below the bound.
  package func start(
    _ order: SortOrder, isExclusive: Bool
  ) throws(RESTError) -> QueryParameters.Bound? {
    if order == .key {
      let key = try keyOfOrder()
      if key == Self.lowestKey { return nil }
      if key == Self.highestKey {
        return QueryParameters.Bound(value: .branch, key: nil, isExclusive: true)
      }
      return QueryParameters.Bound(value: .none, key: Key(bound: key), isExclusive: isExclusive)
    }
    return bound(isExclusive: isExclusive, keylessIsExclusive: key == Self.highestKey)
  }

  /// - Returns: nil if nothing is above the bound.
  package func end(
    _ order: SortOrder, isExclusive: Bool
  ) throws(RESTError) -> QueryParameters.Bound? {
    if order == .key {
      let key = try keyOfOrder()
      if key == Self.highestKey { return nil }
      // No key is lower than the lowest integer.
      let last = key == Self.lowestKey ? String(Int32.min) : key
      return QueryParameters.Bound(
        value: .none, key: Key(bound: last), isExclusive: isExclusive || key == Self.lowestKey)
    }
    return bound(isExclusive: isExclusive, keylessIsExclusive: key == Self.lowestKey)
  }

  private func keyOfOrder() throws(RESTError) -> String {
    guard case .string(let key)? = value else {
      throw .badRequest("Provided key index type is invalid, must be string")
    }
    return key
  }

  /// A key below or above all others puts all children with the value on one side of the bound.
  private func bound(isExclusive: Bool, keylessIsExclusive: Bool) -> QueryParameters.Bound {
    let value = value.map(SortValue.scalar) ?? .none
    guard let key else {
      return QueryParameters.Bound(value: value, key: nil, isExclusive: isExclusive)
    }
    if key == Self.lowestKey || key == Self.highestKey {
      return QueryParameters.Bound(value: value, key: nil, isExclusive: keylessIsExclusive)
    }
    return QueryParameters.Bound(value: value, key: Key(bound: key), isExclusive: isExclusive)
  }
}
