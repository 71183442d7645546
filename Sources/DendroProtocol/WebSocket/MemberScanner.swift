import DendroTree

/// Finds the members of a JSON object, and passes over their values.
struct MemberScanner {
  private let text: UnsafeRawBufferPointer
  /// What is added to an index of the text in all ranges that are returned.
  private let base: Int
  private var index = 0
  /// Whether a member of the object that is looked at comes before the index.
  private var isBehindMember = false

  /// The most levels of brackets in one value.
  private static let depthLimit = 128

  /// The most members of one object: messages, tokens and sets of keys have a few.
  private static let memberCountMax = 4_096

  /// - Parameter text: valid as long as the scanner is used.
  init(_ text: UnsafeRawBufferPointer, from base: Int) {
    self.text = text
    self.base = base
  }

  /// The members; nil if the text is no object, or has too many.
  mutating func object() -> [JSONMembers.Member]? {
    guard let members = members(), isAtEnd() else { return nil }
    return members
  }

  /// The members of an object with which the rest of the text begins; nil if that is none, or has too many.
  mutating func members() -> [JSONMembers.Member]? {
    var members: [JSONMembers.Member] = []
    members.reserveCapacity(4)
    guard beginObject() else { return nil }
    while true {
      switch nextMember() {
      case .name(let name):
        guard members.count < Self.memberCountMax, let range = value() else { return nil }
        members.append(JSONMembers.Member(name: name, range: range))
      case .end: return members
      case .malformed: return nil
      }
    }
  }

  /// What comes next in an object.
  enum Step {
    /// A member, whose value the caller takes.
    case name(JSONMembers.Name)
    case end
    case malformed
  }

  /// - Returns: false if the rest of the text begins with no object.
  mutating func beginObject() -> Bool {
    isBehindMember = false
    return take(UInt8(ascii: "{"))
  }

  /// Goes on in the object that `beginObject()` has begun, behind its beginning or the value of a member.
  mutating func nextMember() -> Step {
    let isFirst = !isBehindMember
    // So it is behind an object that is the value of a member, too.
    isBehindMember = true
    if take(UInt8(ascii: "}")) { return .end }
    guard isFirst || take(UInt8(ascii: ",")), let name = name(), take(UInt8(ascii: ":")) else {
      return .malformed
    }
    return .name(name)
  }

  /// The values of an array; nil if the text is none.
  mutating func array() -> [Range<Int>]? {
    var values: [Range<Int>] = []
    guard take(UInt8(ascii: "[")) else { return nil }
    if !take(UInt8(ascii: "]")) {
      repeat {
        guard let range = value() else { return nil }
        values.append(range)
      } while take(UInt8(ascii: ","))
      guard take(UInt8(ascii: "]")) else { return nil }
    }
    return isAtEnd() ? values : nil
  }

  // MARK: Tokens

  private mutating func skipSpace() {
    while index < text.count, text[index] <= UInt8(ascii: " ") { index += 1 }
  }

  mutating func isAtEnd() -> Bool {
    skipSpace()
    return index == text.count
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    skipSpace()
    guard index < text.count, text[index] == byte else { return false }
    index += 1
    return true
  }

  /// Passes over a string whose opening mark comes next.
  private mutating func passString() -> Bool {
    index += 1
    while index < text.count {
      passPlainWords()
      guard index < text.count else { return false }
      switch text[index] {
      case UInt8(ascii: "\\"): index += 2
      case UInt8(ascii: "\""):
        index += 1
        return true
      default: index += 1
      }
    }
    return false
  }

  /// Passes over what stands in a string before its end or an escape, word by word.
  @inline(__always)
  private mutating func passPlainWords() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    while index &+ 8 <= text.count {
      let word = text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      // A byte of one of these is zero where the string ends, or where an escape begins.
      let mark = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
      let escape = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
      let zeros = (((mark &- ones) & ~mark) | ((escape &- ones) & ~escape)) & highs
      guard zeros == 0 else {
        // The lowest bit is that of the first such byte; only above it one may be set by a borrow.
        index &+= UInt64(littleEndian: zeros).trailingZeroBitCount / 8
        return
      }
      index &+= 8
    }
  }

  private mutating func name() -> JSONMembers.Name? {
    skipSpace()
    let start = index
    guard index < text.count, text[index] == UInt8(ascii: "\""), passString() else { return nil }
    let token = UnsafeRawBufferPointer(rebasing: text[start..<index])
    if Self.isPlain(token) { return .plain(base + start + 1..<base + index - 1) }
    guard case .string(let name)? = (try? JSONParser.parse(token))?.scalar else { return nil }
    return .decoded(name)
  }

  /// The letter that a name is; nil for a longer one.
  func letter(of name: JSONMembers.Name) -> UInt8? {
    switch name {
    case .plain(let range): range.count == 1 ? text[range.lowerBound - base] : nil
    case .decoded(let name): name.utf8.count == 1 ? name.utf8.first : nil
    }
  }

  /// Whether a value is next that begins with a byte.
  mutating func isNext(_ byte: UInt8) -> Bool {
    skipSpace()
    return index < text.count && text[index] == byte
  }

  /// Passes over a value.
  mutating func value() -> Range<Int>? {
    skipSpace()
    let start = index
    var depth = 0
    while index < text.count {
      switch text[index] {
      case UInt8(ascii: "\""):
        guard passString() else { return nil }
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        if depth > Self.depthLimit { return nil }
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return start < index ? base + start..<base + index : nil }
        depth -= 1
      case UInt8(ascii: ","):
        if depth == 0 { return start < index ? base + start..<base + index : nil }
      default: break
      }
      index += 1
    }
    return nil
  }

  // MARK: Values that need no parser

  /// Whether a token is a string in quotes of ASCII without escapes, control characters and quotes, and short.
  static func isPlain(_ token: UnsafeRawBufferPointer) -> Bool {
    guard token.count >= 2, token.count <= 1024, token[0] == UInt8(ascii: "\""),
      token[token.count - 1] == UInt8(ascii: "\"")
    else { return false }
    let end = token.count &- 1
    var index = 1
    while index &+ 8 <= end {
      let word = token.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      if specialBytes(of: word) != 0 { return false }
      index &+= 8
    }
    while index < end {
      if specialBytes(of: UInt64(token[index]) &* 0x0101_0101_0101_0101) != 0 { return false }
      index &+= 1
    }
    return true
  }

  /// Zero if all eight bytes are ASCII that stands in a string as it is.
  @inline(__always)
  private static func specialBytes(of word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    let mark = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
    let escape = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
    // Of bytes below 0x80 none borrows from or carries into the next but behind one that is special itself.
    let isControl = (word &- ones &* 0x20) & ~word
    let isDelete = (word & ~highs) &+ ones
    return (isControl | isDelete | word | ((mark &- ones) & ~mark) | ((escape &- ones) & ~escape))
      & highs
  }

  /// A string that is its own spelling; nil for anything else, which the parser has to look at.
  static func plainString(_ token: UnsafeRawBufferPointer) -> String? {
    guard isPlain(token) else { return nil }
    return String(decoding: token[1..<token.count - 1], as: UTF8.self)
  }

  /// A positive integer; nil for anything else, which the parser has to look at.
  static func plainInteger(_ token: UnsafeRawBufferPointer) -> Int64? {
    guard token.count >= 1, token.count <= 18, token[0] != UInt8(ascii: "0") else { return nil }
    var number: Int64 = 0
    for byte in token {
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      number = number * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    return number
  }
}
