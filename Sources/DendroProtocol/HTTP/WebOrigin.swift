/// Where a page of a browser comes from, as the header field Origin says it: `https://app.example.com`.
package struct WebOrigin: Hashable, Sendable {
  /// `http` or `https`.
  package let scheme: String
  package let authority: Authority

  /// - Parameter text: an origin, or a URL, of which the rest is not looked at.
  /// - Returns: nil for others than those of HTTP, such as `null`.
  package init?(_ text: String) {
    let text = text.lowercased()
    guard let scheme = ["http", "https"].first(where: { text.hasPrefix($0 + "://") }) else {
      return nil
    }
    let rest = text.dropFirst(scheme.count + 3).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard let authority = Authority(rest) else { return nil }
    self.scheme = scheme
    self.authority = authority
  }

  private var port: UInt16 { authority.port ?? defaultPort }
  private var defaultPort: UInt16 { scheme == "https" ? 443 : 80 }

  /// Whether it is the origin of the server that a request with this host has reached. What is in front of the server may
  /// speak TLS.
  package func isOwn(_ host: Authority) -> Bool {
    authority.name == host.name && port == host.port ?? defaultPort
  }

  package static func == (a: WebOrigin, b: WebOrigin) -> Bool {
    a.scheme == b.scheme && a.authority.name == b.authority.name && a.port == b.port
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(scheme)
    hasher.combine(authority.name)
    hasher.combine(port)
  }
}
