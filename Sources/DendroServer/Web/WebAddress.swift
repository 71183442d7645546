import DendroPlatform

/// The URL of a document that the server fetches: with TLS, unless it is on this machine.
struct WebAddress: Sendable, CustomStringConvertible {
  let description: String
  /// Whether it is fetched without TLS.
  let isPlain: Bool

  private static let byteLimit = 2048

  init(_ text: String) throws(DatabaseServerError) {
    let refusal = DatabaseServerError(
      "\(text) is not a URL with https, or with http and a loopback address")
    guard text.utf8.count <= Self.byteLimit,
      // Programs do not agree about what other bytes of a URL mean.
      text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }),
      let mark = text.firstRange(of: "://")
    else { throw refusal }
    let authority = text[mark.upperBound...].prefix { !"/?#".contains($0) }
    // Credentials in a URL show in logs.
    guard !authority.contains("@"), let host = Self.host(of: authority) else { throw refusal }
    switch text[..<mark.lowerBound].lowercased() {
    case "https": isPlain = false
    case "http" where Self.isLoopback(host): isPlain = true
    default: throw refusal
    }
    description = text
  }

  /// Whether a text means a URL, and no file.
  static func isMeant(by text: String) -> Bool {
    let scheme = text.lowercased()
    return scheme.hasPrefix("https://") || scheme.hasPrefix("http://")
  }

  private static func host(of authority: Substring) -> Substring? {
    let host: Substring
    let rest: Substring
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      host = authority[authority.index(after: authority.startIndex)..<end]
      rest = authority[authority.index(after: end)...]
    } else {
      host = authority.prefix { $0 != ":" }
      rest = authority[host.endIndex...]
    }
    guard !host.isEmpty, rest.isEmpty || rest.hasPrefix(":") && UInt16(rest.dropFirst()) != nil
    else { return nil }
    return host
  }

  private static func isLoopback(_ host: Substring) -> Bool {
    var address = in_addr()
    return host == "localhost" || host == "::1"
      || host.hasPrefix("127.") && inet_pton(AF_INET, String(host), &address) == 1
  }
}
