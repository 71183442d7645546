import DendroTree

/// The outermost members of JSON objects and arrays, so that each can be parsed by itself: then a `null` differs
/// from a member that is not there, and values may be as deep as the tree allows.
enum JSONSplit {
  struct Malformed: Error {}

  /// The members of an object by their names; a name that comes twice counts once, with its last value.
  static func members(_ bytes: UnsafeRawBufferPointer) throws -> [String: UnsafeRawBufferPointer] {
    var members: [String: UnsafeRawBufferPointer] = [:]
    for part in try parts(bytes, open: "{", close: "}") {
      guard let colon = try outermost(UInt8(ascii: ":"), in: part).first,
        case .string(let name)? = try JSONParser.parse(
          UnsafeRawBufferPointer(rebasing: part[..<colon])
        ).scalar
      else { throw Malformed() }
      members[name] = UnsafeRawBufferPointer(rebasing: part[(colon + 1)...])
    }
    return members
  }

  static func elements(_ bytes: UnsafeRawBufferPointer) throws -> [UnsafeRawBufferPointer] {
    try parts(bytes, open: "[", close: "]")
  }

  private static func parts(
    _ bytes: UnsafeRawBufferPointer, open: Unicode.Scalar, close: Unicode.Scalar
  ) throws -> [UnsafeRawBufferPointer] {
    var (start, end) = (0, bytes.count)
    while start < end, isSpace(bytes[start]) { start += 1 }
    while end > start, isSpace(bytes[end - 1]) { end -= 1 }
    guard end - start >= 2, bytes[start] == UInt8(ascii: open),
      bytes[end - 1] == UInt8(ascii: close)
    else { throw Malformed() }
    let inner = UnsafeRawBufferPointer(rebasing: bytes[(start + 1)..<(end - 1)])
    if inner.allSatisfy(isSpace) { return [] }
    var parts: [UnsafeRawBufferPointer] = []
    var first = 0
    for comma in try outermost(UInt8(ascii: ","), in: inner) + [inner.count] {
      parts.append(UnsafeRawBufferPointer(rebasing: inner[first..<comma]))
      first = comma + 1
    }
    return parts
  }

  /// Where a byte stands outside of strings, objects and arrays.
  private static func outermost(_ byte: UInt8, in bytes: UnsafeRawBufferPointer) throws -> [Int] {
    var places: [Int] = []
    var depth = 0
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\""):
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
          index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard index < bytes.count else { throw Malformed() }
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case byte where depth == 0: places.append(index)
      default: break
      }
      guard depth >= 0 else { throw Malformed() }
      index += 1
    }
    guard depth == 0 else { throw Malformed() }
    return places
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }
}
