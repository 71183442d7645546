extension Key {
  /// Makes a key from any text: each character that no key may have, and the percent sign itself, becomes a
  /// percent sign and two digits, as in URLs. So different texts have different keys.
  ///
  /// - Throws: `ValidationError` of kind `.invalidKey` if the text is empty, or too long when it is escaped.
  package init(escaping text: some Collection<UInt8>) throws(ValidationError) {
    var escaped: [UInt8] = []
    escaped.reserveCapacity(text.count)
    for byte in text {
      if Self.isEscaped(byte) {
        escaped.append(UInt8(ascii: "%"))
        escaped.append(Self.digit(byte >> 4))
        escaped.append(Self.digit(byte & 15))
      } else {
        escaped.append(byte)
      }
    }
    let result = escaped.withUnsafeBytes { bytes in
      Result { () throws(ValidationError) in try Key(utf8: bytes) }
    }
    self = try result.get()
  }

  private static func isEscaped(_ byte: UInt8) -> Bool {
    switch byte {
    case 0..<0x20, 0x7F: true
    default: "%.#$[]/".utf8.contains(byte)
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }
}

extension Node {
  /// Whether all data of this node is in another one: a branch may have fewer children there.
  package func isContained(in other: Node) -> Bool {
    if isIdentical(to: other) { return true }
    guard isBranch, other.isBranch else { return self == other }
    if let priority, priority != other.priority { return false }
    return children.allSatisfy { $0.node.isContained(in: other.child($0.key)) }
  }
}
