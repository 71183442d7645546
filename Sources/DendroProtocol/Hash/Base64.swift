import CDendroCrypto

/// Base64 (RFC 4648).
package enum Base64 {
  /// Encodes with padding.
  package static func encode(_ bytes: [UInt8]) -> String {
    // OpenSSL writes a NUL behind the text.
    let capacity = (bytes.count + 2) / 3 * 4 + 1
    return String(unsafeUninitializedCapacity: capacity) { text in
      Int(EVP_EncodeBlock(text.baseAddress, bytes, Int32(bytes.count)))
    }
  }

  /// Decodes the URL alphabet or the plain one, with or without padding; nil if the text is neither.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    let padding = UInt8(ascii: "=")
    var digits = text.map { character in
      switch character {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: character
      }
    }
    while digits.last == padding { digits.removeLast() }
    // To make an array of no bytes would write to the one empty array that all threads share.
    if digits.isEmpty { return [] }
    // OpenSSL passes over white space, and takes padding for a digit.
    guard !digits.contains(where: { $0 <= 0x20 || $0 == padding }) else { return nil }
    let paddingCount = -digits.count & 3
    guard paddingCount < 3 else { return nil }
    digits += repeatElement(padding, count: paddingCount)
    var isValid = true
    let bytes = [UInt8](unsafeUninitializedCapacity: digits.count / 4 * 3) { bytes, count in
      let byteCount = Int(EVP_DecodeBlock(bytes.baseAddress, digits, Int32(digits.count)))
      isValid = byteCount >= 0
      count = isValid ? byteCount - paddingCount : 0
    }
    return isValid ? bytes : nil
  }
}
