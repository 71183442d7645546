import DendroPlatform
import Foundation

/// The parts of the URL of a database or of a location in one.
///
/// `scheme://host[:port]/path?query`; the scheme may be left out. The host is taken in lower case. The
/// query is dropped but for `ns`, which names the database if the host does not.
struct DatabaseURL: Equatable {
  let scheme: String
  let host: String
  let port: Int?
  let namespace: String?
  /// Decoded segments with slashes between them; "" for the root.
  let path: String

  /// Without a path: what the addresses of locations begin with.
  var address: String { "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "") }

  /// Whether both name the same database.
  func isSameDatabase(as other: DatabaseURL) -> Bool { host == other.host && port == other.port }

  /// - Throws: ``DatabaseError/Code/invalidURL``.
  init(parsing text: String) throws(DatabaseError) {
    var rest = Substring(text)
    var given: String?
    if let mark = rest.range(of: "://") {
      given = rest[..<mark.lowerBound].lowercased()
      rest = rest[mark.upperBound...]
    }
    var query: Substring = ""
    if let mark = rest.firstIndex(of: "?") {
      query = rest[rest.index(after: mark)...]
      rest = rest[..<mark]
    }
    let authority = Substring(rest.utf8.prefix { $0 != UInt8(ascii: "/") })
    path = Self.decoded(rest[authority.endIndex...])
    (host, port) = try Self.hostAndPort(authority, of: text)
    scheme = try Self.scheme(given, hasPort: port != nil, of: text)
    namespace = try Self.namespace(query, host: host, of: text)
  }

  static func invalid(_ text: String, _ reason: String) -> DatabaseError {
    let shown = text.count > 200 ? text.prefix(200) + "…" : text
    return DatabaseError(
      .invalidURL, "InvalidDatabaseURL", "the URL \(shown.debugDescription) \(reason)")
  }

  private static func hostAndPort(
    _ authority: Substring, of text: String
  ) throws(DatabaseError) -> (String, Int?) {
    var host = authority
    var port: Int?
    // The colons of an IPv6 address stand in brackets.
    if let mark = authority.lastIndex(of: ":"), !authority[mark...].contains("]") {
      host = authority[..<mark]
      port = UInt16(authority[authority.index(after: mark)...]).map(Int.init)
      if port == nil { throw invalid(text, "has a port that is no number up to 65535") }
    }
    guard isHost(host) else {
      throw invalid(
        text,
        "needs a host: labels of letters, digits, _, and - within, or an IPv6 address in brackets")
    }
    return (host.lowercased(), port)
  }

  static func isHost(_ text: some StringProtocol) -> Bool {
    if text.hasPrefix("["), text.hasSuffix("]") { return isIPv6(text.dropFirst().dropLast()) }
    return isName(text)
      && text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
        !label.isEmpty && !label.hasPrefix("-") && !label.hasSuffix("-")
      }
  }

  static func isIPv6(_ text: some StringProtocol) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, String(text), &address) == 1
  }

  /// Also a file name, so that it can name a directory.
  private static func isName(_ text: some StringProtocol) -> Bool {
    (1...253).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
          UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  private static func scheme(
    _ given: String?, hasPort: Bool, of text: String
  ) throws(DatabaseError) -> String {
    switch given {
    case "https", "wss": "https"
    case "http", "ws": hasPort ? "http" : "https"
    case "dendro": "dendro"
    case nil: hasPort ? "http" : "https"
    default: throw invalid(text, "has a scheme other than https, http, wss, ws and dendro")
    }
  }

  /// A host of three labels names its database by the first one.
  private static func namespace(
    _ query: Substring, host: String, of text: String
  ) throws(DatabaseError) -> String? {
    if host.split(separator: ".", omittingEmptySubsequences: false).count == 3 { return nil }
    for item in query.split(separator: "&") where item.hasPrefix("ns=") {
      let name = item.dropFirst("ns=".count)
      guard isName(name) else { throw invalid(text, "has a name under ns= that cannot be one") }
      return name.lowercased()
    }
    return nil
  }

  /// Piece by piece a plus is a space and percent signs are decoded; a piece that cannot be stays. What
  /// was a slash in a piece then parts it.
  private static func decoded(_ path: Substring) -> String {
    path.utf8.split(separator: UInt8(ascii: "/")).map { piece in
      let piece = Substring(piece)
      let spaced = piece.replacing("+", with: " ")
      return spaced.removingPercentEncoding ?? String(spaced)
    }.joined(separator: "/")
  }
}
