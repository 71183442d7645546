import DendroTree

/// What the members of a message say about it, found in one pass over its text: what is to be written may be long.
///
///     {"t": TYPE, "d": {"t": KIND, "r": NUMBER, "a": ACTION, "b": {…}}}
struct WireEnvelope {
  /// Types and kinds are letters; nil for what is none.
  private(set) var type: UInt8?
  /// Of a control message.
  private(set) var kind: UInt8?
  private(set) var number: Int64?
  private(set) var action = Action.none
  /// Nil if there is none, or something else than an object.
  private(set) var body: JSONMembers?

  /// The name of what is asked for.
  enum Action: Sendable {
    case none
    /// One letter, as most are.
    case letter(UInt8)
    case name(String)

    var text: String {
      switch self {
      case .none: ""
      case .letter(let letter): String(UnicodeScalar(letter))
      case .name(let name): name
      }
    }
  }

  init() {}

  /// Reads a message, once.
  ///
  /// - Returns: false if the message or its member `d` is no object.
  /// - Complexity: O(n).
  mutating func read(_ message: [UInt8]) -> Bool {
    message.withUnsafeBytes { read($0, message) }
  }

  private mutating func read(_ text: UnsafeRawBufferPointer, _ message: [UInt8]) -> Bool {
    var hasData = false
    var scanner = MemberScanner(text, from: 0)
    guard scanner.beginObject() else { return false }
    while true {
      switch scanner.nextMember() {
      case .malformed: return false
      case .end: return scanner.isAtEnd() && hasData
      case .name(let name):
        let letter = scanner.letter(of: name)
        if letter == UInt8(ascii: "d") {
          // Of several, the last counts.
          forgetData()
          hasData = scanner.isNext(UInt8(ascii: "{"))
          if hasData {
            guard readData(&scanner, text, message) else { return false }
            continue
          }
        }
        guard let value = scanner.value() else { return false }
        if letter == UInt8(ascii: "t") { type = Self.letter(text, value) }
      }
    }
  }

  private mutating func forgetData() {
    kind = nil
    number = nil
    action = .none
    body = nil
  }

  private mutating func readData(
    _ scanner: inout MemberScanner, _ text: UnsafeRawBufferPointer, _ message: [UInt8]
  ) -> Bool {
    guard scanner.beginObject() else { return false }
    while true {
      switch scanner.nextMember() {
      case .malformed: return false
      case .end: return true
      case .name(let name):
        let letter = scanner.letter(of: name)
        if letter == UInt8(ascii: "b") {
          // A body that is no object is passed over as what it is.
          var attempt = scanner
          body = attempt.members().map { JSONMembers($0, of: message[...]) }
          if body != nil {
            scanner = attempt
            continue
          }
        }
        guard let value = scanner.value() else { return false }
        switch letter {
        case UInt8(ascii: "t"): kind = Self.letter(text, value)
        case UInt8(ascii: "r"):
          number = nil
          if case .integer(let integer)?? = Self.scalar(text, value) { number = integer }
        case UInt8(ascii: "a"): action = Self.action(text, value)
        default: break
        }
      }
    }
  }

  /// The letter that a string is; nil for anything else.
  private static func letter(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt8? {
    if range.count == 3, text[range.lowerBound] == UInt8(ascii: "\"") {
      return text[range.lowerBound + 1]
    }
    guard let string = string(text, range), string.utf8.count == 1 else { return nil }
    return string.utf8.first
  }

  private static func action(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Action {
    if range.count == 3, text[range.lowerBound] == UInt8(ascii: "\"") {
      let letter = text[range.lowerBound + 1]
      if letter >= 0x20, letter < 0x80, letter != UInt8(ascii: "\\") { return .letter(letter) }
    }
    return string(text, range).map { .name($0) } ?? .none
  }

  private static func scalar(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Scalar?? {
    JSONMembers.scalar(UnsafeRawBufferPointer(rebasing: text[range]))
  }

  private static func string(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> String? {
    if case .string(let string)?? = scalar(text, range) { string } else { nil }
  }
}
