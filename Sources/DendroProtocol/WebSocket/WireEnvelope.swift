import DendroTree

/// What the members of a message say about it, found in one pass over its text: what is to be written may be long.
///
///     {"t": TYPE, "d": {"t": KIND, "r": NUMBER, "a": ACTION, "b": {…}}}
struct WireEnvelope {
  private(set) var type: String?
  /// Of a control message.
  private(set) var kind: String?
  private(set) var number: Int64?
  private(set) var action: String?
  /// Nil if there is none, or something else than an object.
  private(set) var body: JSONMembers?

  /// - Returns: nil if the message or its member `d` is no object.
  /// - Complexity: O(n).
  init?(_ message: [UInt8]) {
    var envelope = WireEnvelope()
    var hasData = false
    let isObject = message.withUnsafeBytes { text in
      var scanner = MemberScanner(text, from: 0)
      let isWhole = scanner.forEachMember { name, scanner in
        switch scanner.letter(of: name) {
        case UInt8(ascii: "t"):
          guard let value = scanner.value() else { return false }
          envelope.type = Self.string(text, value)
        case UInt8(ascii: "d"):
          // Of several, the last counts.
          envelope = WireEnvelope(type: envelope.type)
          hasData = scanner.isNext(UInt8(ascii: "{"))
          if hasData { return envelope.readData(&scanner, text, message) }
          return scanner.value() != nil
        default: return scanner.value() != nil
        }
        return true
      }
      return isWhole && scanner.isAtEnd()
    }
    guard isObject, hasData else { return nil }
    self = envelope
  }

  private init(type: String? = nil) { self.type = type }

  private mutating func readData(
    _ scanner: inout MemberScanner, _ text: UnsafeRawBufferPointer, _ message: [UInt8]
  ) -> Bool {
    scanner.forEachMember { name, scanner in
      let letter = scanner.letter(of: name)
      if letter == UInt8(ascii: "b") {
        // A body that is no object is passed over as what it is.
        var attempt = scanner
        body = attempt.members().map { JSONMembers($0, of: message[...]) }
        if body != nil {
          scanner = attempt
          return true
        }
      }
      guard let value = scanner.value() else { return false }
      switch letter {
      case UInt8(ascii: "t"): kind = Self.string(text, value)
      case UInt8(ascii: "r"):
        number = nil
        if case .integer(let integer)?? = Self.scalar(text, value) { number = integer }
      case UInt8(ascii: "a"): action = Self.string(text, value)
      default: break
      }
      return true
    }
  }

  private static func scalar(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Scalar?? {
    JSONMembers.scalar(UnsafeRawBufferPointer(rebasing: text[range]))
  }

  private static func string(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> String? {
    if case .string(let string)?? = scalar(text, range) { string } else { nil }
  }
}
