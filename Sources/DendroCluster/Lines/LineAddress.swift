import CDendroCrypto

/// Where a process takes lines, and the key that those who call it have to have.
struct LineAddress: Hashable, Sendable {
  let host: String
  let port: UInt16
  /// Drawn at random.
  let key: [UInt8]

  static let keyByteCount = Int(dendro_tls_key_size)

  init(host: String, port: UInt16) {
    self.host = host
    self.port = port
    key = (0..<Self.keyByteCount).map { _ in UInt8.random(in: .min ... .max) }
  }

  /// - Parameter text: as `text` gives it.
  /// - Returns: nil if it is no address, or the key has another length.
  init?(_ text: String, key: [UInt8]) {
    guard key.count == Self.keyByteCount, let colon = text.lastIndex(of: ":"),
      let port = UInt16(text[text.index(after: colon)...]), port > 0, colon > text.startIndex
    else { return nil }
    host = String(text[..<colon])
    self.port = port
    self.key = key
  }

  /// Host and port.
  var text: String { "\(host):\(port)" }
}
