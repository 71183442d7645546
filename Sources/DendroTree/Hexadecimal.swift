extension UInt32 {
  /// The value in upper-case hexadecimal digits, padded with zeros to `digitCount`; for error messages.
  func hexadecimal(digitCount: Int) -> String {
    let text = String(self, radix: 16, uppercase: true)
    return String(repeating: "0", count: Swift.max(0, digitCount - text.utf8.count)) + text
  }
}
