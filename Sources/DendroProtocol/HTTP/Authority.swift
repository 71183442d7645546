/// The host and the port of a URL or of the header field Host.
package struct Authority: Hashable, Sendable {
  /// In lower case; an IPv6 address without its brackets.
  package let name: String
  /// Nil if it is that of the scheme.
  package let port: UInt16?
  /// Whether the name is an IP address.
  package let isAddress: Bool

  /// - Returns: nil for what is none: also with a user, with a dot at the end, or empty.
  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard !bytes.isEmpty, bytes.count <= 270 else { return nil }
    let end: Int
    if bytes[0] == UInt8(ascii: "[") {
      guard let close = bytes.firstIndex(of: UInt8(ascii: "]")), close > 2 else { return nil }
      let address = bytes[1..<close]
      guard address.contains(UInt8(ascii: ":")), address.allSatisfy(Self.isOfIPv6) else {
        return nil
      }
      name = String(decoding: address, as: UTF8.self).lowercased()
      isAddress = true
      end = close + 1
    } else {
      end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
      guard let isAddress = Self.isAddress(bytes[..<end]) else { return nil }
      name = String(decoding: bytes[..<end], as: UTF8.self).lowercased()
      self.isAddress = isAddress
    }
    guard end < bytes.count else {
      port = nil
      return
    }
    let digits = bytes[(end + 1)...]
    guard bytes[end] == UInt8(ascii: ":"), digits.allSatisfy(Self.isDigit),
      let port = UInt16(String(decoding: digits, as: UTF8.self))
    else { return nil }
    self.port = port
  }

  /// Whether only this machine has the name.
  package var isLoopback: Bool {
    name == "localhost" || name.hasSuffix(".localhost") || name == "::1"
      || isAddress && name.hasPrefix("127.")
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func isOfIPv6(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
      UInt8(ascii: ":"), UInt8(ascii: "."):
      true
    default: isDigit(byte)
    }
  }

  /// Whether a name is an IPv4 address; nil if it is no name.
  private static func isAddress(_ name: ArraySlice<UInt8>) -> Bool? {
    let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    for label in labels {
      guard !label.isEmpty, label.allSatisfy(isOfName) else { return nil }
    }
    return labels.count == 4
      && labels.allSatisfy { label in
        label.allSatisfy(isDigit) && UInt8(String(decoding: label, as: UTF8.self)) != nil
      }
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: isDigit(byte)
    }
  }
}
