/// Recognizes one UTF-8 sequence by the table of well-formed byte sequences in the Unicode standard
/// (table 3-7).
enum UTF8Sequence {
  /// The length of the sequence of two to four bytes at `start`, or 0 if it is not well-formed.
  @inline(__always)
  static func length(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int {
    let available = end - start
    guard available >= 2 else { return 0 }
    let second = start[1]
    switch start[0] {
    case 0xC2...0xDF:
      return second & 0xC0 == 0x80 ? 2 : 0
    case let lead where lead & 0xF0 == 0xE0:
      guard available >= 3, second & 0xC0 == 0x80, start[2] & 0xC0 == 0x80 else { return 0 }
      if lead == 0xE0 && second < 0xA0 || lead == 0xED && second > 0x9F { return 0 }
      return 3
    case let lead where lead >= 0xF0 && lead <= 0xF4:
      guard available >= 4, second & 0xC0 == 0x80, start[2] & 0xC0 == 0x80,
        start[3] & 0xC0 == 0x80
      else { return 0 }
      if lead == 0xF0 && second < 0x90 || lead == 0xF4 && second > 0x8F { return 0 }
      return 4
    default: return 0
    }
  }
}
