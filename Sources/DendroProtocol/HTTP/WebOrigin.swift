/// Where a page comes from, as the header field Origin says it: `https://app.example.com`; or that of an app on a device, as
/// `capacitor://localhost`.
package struct WebOrigin: Hashable, Sendable {
  private let scheme: String
  /// Of a page that came by HTTP.
  private let authority: Authority?
  /// What stands behind the scheme otherwise.
  private let rest: String

  /// - Returns: nil for what is no origin, such as `null`, and for a URL with a path.
  package init?(_ text: String) { self.init(text, allowsPath: false) }

  /// The origin of what a URL leads to.
  package init?(url: String) { self.init(url, allowsPath: true) }

  private init?(_ text: String, allowsPath: Bool) {
    let text = text.lowercased()
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].hasPrefix("//"), let first = parts[0].utf8.first,
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first)
    else { return nil }
    let behind = parts[1].dropFirst(2)
    let place = behind.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !place.isEmpty, allowsPath || place.endIndex == behind.endIndex else { return nil }
    scheme = String(parts[0])
    if scheme == "http" || scheme == "https" {
      guard let authority = Authority(place) else { return nil }
      self.authority = authority
      rest = ""
    } else {
      authority = nil
      rest = String(place)
    }
  }

  private var port: UInt16 { authority?.port ?? defaultPort }
  private var defaultPort: UInt16 { scheme == "https" ? 443 : 80 }

  /// Whether it is a page of this machine.
  package var isLoopback: Bool { authority?.isLoopback ?? false }

  /// Whether it is the origin of the server that a request with this host has reached.
  ///
  /// - Parameters:
  ///   - host: as the request says it.
  ///   - isSecure: whether the server speaks TLS. If not, what is in front of it may.
  package func isOwn(_ host: Authority, isSecure: Bool) -> Bool {
    authority?.name == host.name && port == host.port ?? defaultPort
      && (!isSecure || scheme == "https")
  }

  package static func == (a: WebOrigin, b: WebOrigin) -> Bool {
    a.scheme == b.scheme && a.authority?.name == b.authority?.name && a.port == b.port
      && a.rest == b.rest
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(scheme)
    hasher.combine(authority?.name)
    hasher.combine(port)
    hasher.combine(rest)
  }
}
