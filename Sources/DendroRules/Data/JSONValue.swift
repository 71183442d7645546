/// A JSON value: the claims of a token. Unlike the keys of the data, names of members may be any strings.
public enum JSONValue: Hashable, Sendable {
  /// `null`.
  case null
  /// A boolean, a number or a string.
  case scalar(RuleScalar)
  /// A list of values.
  case array([JSONValue])
  /// Values by name.
  case object(JSONObject)

  /// Parses JSON by RFC 8259.
  ///
  /// - Throws: ``RuleTextError``, also if the nesting is deeper than ``RuleLimits/nesting``, or a number
  ///   exceeds the range of a double.
  /// - Complexity: O(n).
  public init(parsing text: String) throws(RuleTextError) {
    let bytes = Array(text.utf8)
    do throws(TextFailure) {
      try self.init(TextParser.parse(bytes, .strict))
    } catch {
      throw error.error(in: bytes)
    }
  }

  init(_ value: TextValue) throws(TextFailure) {
    switch value.kind {
    case .null: self = .null
    case .boolean(let value): self = .scalar(.boolean(value))
    case .string(let value): self = .scalar(.string(value.text))
    case .number(let spelling):
      guard let number = RuleScalar(number: spelling) else {
        throw TextFailure("The number is out of range.", at: value.range.lowerBound)
      }
      self = .scalar(number)
    case .array(let values):
      var elements: [JSONValue] = []
      for value in values { elements.append(try JSONValue(value)) }
      self = .array(elements)
    case .object(let members):
      var pairs: [(String, JSONValue)] = []
      for member in members { pairs.append((member.name.text, try JSONValue(member.value))) }
      self = .object(JSONObject(pairs))
    }
  }

  /// The member of an object; null if there is none, or if this is no object.
  public subscript(name: String) -> JSONValue {
    if case .object(let object) = self { object[name] } else { .null }
  }

  /// The string; nil for any other value.
  public var string: String? {
    if case .scalar(.string(let value)) = self { value } else { nil }
  }
}

extension RuleScalar {
  /// The number with a spelling; nil if it exceeds the range of a double.
  init?(number spelling: String) {
    if let integer = Int64(spelling), !(integer == 0 && spelling.utf8.first == UInt8(ascii: "-")) {
      self = .integer(integer)
    } else if let double = Double(spelling), double.isFinite {
      self = .double(double)
    } else {
      return nil
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
  /// Makes a string.
  public init(stringLiteral value: String) { self = .scalar(.string(value)) }
  /// Makes a boolean.
  public init(booleanLiteral value: Bool) { self = .scalar(.boolean(value)) }
}

extension JSONValue: ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
  /// Makes a number.
  public init(integerLiteral value: Int64) { self = .scalar(.integer(value)) }
  /// Makes null.
  public init(nilLiteral: ()) { self = .null }
}

extension JSONValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  /// Makes a list.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Makes an object.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(JSONObject(elements))
  }
}
