extension UInt32 {
  /// The value in upper-case hexadecimal digits, padded with zeros to `digitCount`; for error messages.
  func hexadecimal(digitCount: Int) -> String {
    let text = String(self, radix: 16, uppercase: true)
    return String(repeating: "0", count: Swift.max(0, digitCount - text.utf8.count)) + text
  }
}

/// Two lower-case digits for each byte: how tools show the bytes of the second root.
package func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
    for (index, byte) in bytes.enumerated() {
      text[2 * index] = digits[Int(byte >> 4)]
      text[2 * index + 1] = digits[Int(byte & 15)]
    }
    return 2 * bytes.count
  }
}
