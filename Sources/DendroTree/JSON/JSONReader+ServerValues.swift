extension JSONReader {
  private static let forms = "a .sv is \"timestamp\" or {\"increment\": a number}"

  /// Reads `{".sv": …}` whose opening bracket comes next.
  ///
  /// - Throws: `kind` and `message` at the bracket, if it is another object.
  /// - Returns: the stand-in.
  mutating func serverValueObject(
    isPriority: Bool, otherwise kind: JSONError.Kind, _ message: String
  ) throws(JSONFailure) -> Scalar {
    let position = scanner.position
    scanner.advance()
    guard try scanner.peek() == UInt8(ascii: "\""), try text("the key") == ".sv" else {
      throw scanner.failure(message, kind: kind, at: position)
    }
    try colon()
    let standIn = try serverValue(isPriority: isPriority)
    try close()
    return standIn
  }

  /// Reads what follows `".sv":`, and notes it as the value or the priority at `keys`.
  ///
  /// - Returns: the stand-in.
  mutating func serverValue(isPriority: Bool) throws(JSONFailure) -> Scalar {
    let value: Draft.Deferred.Value
    switch try scanner.peek() {
    case UInt8(ascii: "\""):
      guard try text("the server value") == "timestamp" else {
        throw scanner.failure(Self.forms, kind: .data(.invalidData))
      }
      value = .timestamp
    case UInt8(ascii: "{"):
      scanner.advance()
      guard try scanner.peek() == UInt8(ascii: "\""), try text("the server value") == "increment"
      else { throw scanner.failure(Self.forms, kind: .data(.invalidData)) }
      try colon()
      switch try scanner.peek() {
      case UInt8(ascii: "-")?, (UInt8(ascii: "0")...UInt8(ascii: "9"))?: break
      default: throw scanner.failure(Self.forms, kind: .data(.invalidData))
      }
      value = .increment(try scanner.number())
      try close()
    default: throw scanner.failure(Self.forms, kind: .data(.invalidData))
    }
    deferred.append(
      Draft.Deferred(path: Path(keys: keys), isPriority: isPriority, value: value))
    return Draft.Deferred.standIn(deferred.count - 1)
  }

  private mutating func text(_ what: StaticString) throws(JSONFailure) -> String {
    try scanner.string(limit: Limits.stringBytes, what) { String(decoding: $0, as: UTF8.self) }
  }

  private mutating func close() throws(JSONFailure) {
    guard try scanner.peek() == UInt8(ascii: "}") else {
      throw scanner.failure(Self.forms, kind: .data(.invalidData))
    }
    scanner.advance()
  }
}

extension Draft.Deferred {
  /// The leaf or priority in the place of the server value with this index. If an object has a key twice, its
  /// earlier value is dropped, and with it stand-ins: the index says which server values are left.
  static func standIn(_ index: Int) -> Scalar { .string("\u{1}server value \(index)") }
}
