import Dendro

// Data, and names of files in a directory from elsewhere, may hold what a terminal obeys: control characters, and
// the marks that turn the direction of writing. People see neither as such.

extension String {
  /// The text with a replacement character for each of those, but for line feeds.
  var printable: String {
    guard unicodeScalars.contains(where: { $0.isTerminalControl && $0 != "\n" }) else {
      return self
    }
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      result.append(scalar.isTerminalControl && scalar != "\n" ? "\u{FFFD}" : scalar)
    }
    return String(result)
  }
}

/// Escapes those in JSON text, which comes in pieces: it has the same value then.
struct TerminalJSON {
  /// The beginning of a character that may be one of them.
  private var begun: [UInt8] = []

  mutating func escaped(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    for byte in bytes { take(byte, &output) }
    return output
  }

  private mutating func take(_ byte: UInt8, _ output: inout [UInt8]) {
    switch (begun, byte) {
    case ([], 0x7F): output += Self.escape(0x7F)
    case ([], 0xC2), ([], 0xE2), ([0xE2], 0x80...0x81): begun.append(byte)
    case ([0xC2], 0x80...0x9F): end(Self.escape(UInt32(byte)), &output)
    case ([0xE2, 0x80], 0xA8...0xAE): end(Self.escape(0x2000 + UInt32(byte - 0x80)), &output)
    case ([0xE2, 0x81], 0xA6...0xA9): end(Self.escape(0x2040 + UInt32(byte - 0x80)), &output)
    default: end(begun + [byte], &output)
    }
  }

  private mutating func end(_ bytes: [UInt8], _ output: inout [UInt8]) {
    output += bytes
    begun = []
  }

  private static func escape(_ value: UInt32) -> [UInt8] {
    let digits = String(value, radix: 16)
    return Array("\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8)
  }
}
