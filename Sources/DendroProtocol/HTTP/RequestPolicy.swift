/// Decides by the host name and the origin of a request whether a server answers it.
///
/// A browser sends requests for every page that it shows, and the page chooses their host name: the page of a stranger
/// could write to a server on its reader's own machine. So a server that believes credentials without a proof, or lets
/// everybody do everything, answers requests under its own host names only, and only from its own pages, from pages of this
/// machine, and from the origins that its options name. A server that checks credentials answers pages of all origins: the
/// page of a stranger has no credential.
package struct RequestPolicy: Sendable {
  private let isStrict: Bool
  /// Whether the server itself speaks TLS, and so do all of its pages.
  private let isSecure: Bool
  private let hostNames: Set<String>
  private let origins: Set<WebOrigin>
  private let allowsAllOrigins: Bool

  /// - Parameters:
  ///   - isStrict: whether names and origins are looked at, and not only whether the head is well formed.
  ///   - isSecure: whether the server itself speaks TLS. If not, what is in front of it may.
  ///   - hostNames: names that the server goes by, beside those that every server does.
  ///   - origins: of pages that may ask; `*` for all.
  /// - Throws: `RESTError` with what is no name or origin.
  package init(
    isStrict: Bool, isSecure: Bool = false, hostNames: [String] = [], origins: [String] = []
  ) throws(RESTError) {
    self.isStrict = isStrict
    self.isSecure = isSecure
    var names = Self.namesOfContainers
    for text in hostNames {
      guard let name = Self.hostName(text) else {
        throw .badRequest("\(RESTRequest.shortened(text)) is no host name")
      }
      names.insert(name)
    }
    self.hostNames = names
    allowsAllOrigins = origins.contains("*")
    var allowed: Set<WebOrigin> = []
    for text in origins where text != "*" {
      guard let origin = WebOrigin(text) else {
        throw .badRequest(
          "\(RESTRequest.shortened(text)) is no origin, such as https://app.example.com")
      }
      allowed.insert(origin)
    }
    self.origins = allowed
  }

  /// By which containers reach their host.
  static let namesOfContainers: Set<String> = ["host.docker.internal", "host.containers.internal"]

  /// The name as it is compared; nil if it is none, or has a port.
  package static func hostName(_ text: String) -> String? {
    Authority(text).flatMap { $0.port == nil ? $0.name : nil }
  }

  /// What the head of a request says about its sender.
  private struct Head {
    let host: Authority?
    /// As it stands there.
    let origin: String?
    /// Of the page that has the link or the script.
    let referrer: WebOrigin?
    /// Where a browser says that the page is, relative to the server; nil for other clients, and where browsers do not say
    /// it.
    let site: String?
    /// Whether the user goes to the page at `/`, as by a link.
    let isVisit: Bool
  }

  /// Checks the head of a request: its method, target and version as in the request line.
  ///
  /// - Throws: `RESTError` with status 400 for a head that is not well formed, or 403.
  package func check(
    method: String, target: String, version: String, headers: HTTPHeaders
  ) throws(RESTError) {
    let head = try Self.head(method, target, version, headers)
    guard isStrict else { return }
    if let host = head.host, !isOwn(host) {
      throw RESTError(
        403,
        "The server does not go by the name \(RESTRequest.shortened(host.name)): --allow-host, or "
          + "DatabaseServerOptions.hostNames, allows it.")
    }
    try checkOrigin(head)
    let query = target.utf8.contains(UInt8(ascii: "?")) ? try RequestTarget(target) : nil
    if let origin = head.origin {
      // A page may send a POST to any server without being asked whether it may.
      if method == "POST", query?["x-http-method-override"] != nil,
        headers["x-http-method-override"] == nil, !isOwn(origin, head)
      {
        throw RESTError(
          403, "A page of another origin must say the method in the request line or in a header.")
      }
    } else if target.hasPrefix("/.lp") || query?["callback"] != nil {
      // A page can load these as scripts.
      try checkScript(head)
    }
  }

  private static func head(
    _ method: String, _ target: String, _ version: String, _ headers: HTTPHeaders
  ) throws(RESTError) -> Head {
    guard target.hasPrefix("/") || target == "*" else {
      throw .badRequest("The target of the request is no path.")
    }
    let hosts = headers.values("host")
    guard hosts.count == 1 || hosts.isEmpty && version == "HTTP/1.0" else {
      throw .badRequest("A request has the header field Host once.")
    }
    let host = hosts.first.flatMap { Authority($0) }
    if !hosts.isEmpty, host == nil { throw .badRequest("The header field Host is malformed.") }
    let origins = headers.values("origin")
    guard origins.count <= 1 else {
      throw .badRequest("A request has the header field Origin once.")
    }
    return Head(
      host: host, origin: origins.first,
      referrer: headers["referer"].flatMap { WebOrigin(url: $0) },
      site: headers["sec-fetch-site"],
      isVisit: method == "GET" && (target == "/" || target.hasPrefix("/?"))
        && headers["sec-fetch-mode"] == "navigate" && headers["sec-fetch-dest"] == "document")
  }

  /// Whether the server answers requests under a host name. A stranger on the internet can make neither an address nor a
  /// name without a dot lead to this server.
  private func isOwn(_ host: Authority) -> Bool {
    host.isAddress || host.isLoopback || !host.name.contains(".") || hostNames.contains(host.name)
  }

  private func checkOrigin(_ head: Head) throws(RESTError) {
    if let origin = head.origin {
      guard allowsAllOrigins || WebOrigin(origin).map({ isAllowed($0, head) }) ?? false else {
        throw .otherOrigin
      }
    } else if head.site == "cross-site", !head.isVisit {
      guard isReferrerAllowed(head) else { throw .otherOrigin }
    }
  }

  private func checkScript(_ head: Head) throws(RESTError) {
    switch head.site {
    case "same-origin", "same-site", "none": return
    case nil where head.host?.isLoopback ?? false: return
    default:
      guard isReferrerAllowed(head) else { throw .otherOrigin }
    }
  }

  private func isReferrerAllowed(_ head: Head) -> Bool {
    allowsAllOrigins || head.referrer.map { isAllowed($0, head) } ?? false
  }

  private func isAllowed(_ origin: WebOrigin, _ head: Head) -> Bool {
    origin.isLoopback || origins.contains(origin)
      || head.host.map { origin.isOwn($0, isSecure: isSecure) } ?? false
  }

  private func isOwn(_ origin: String, _ head: Head) -> Bool {
    guard let origin = WebOrigin(origin), let host = head.host else { return false }
    return origin.isOwn(host, isSecure: isSecure)
  }
}

extension RESTError {
  fileprivate static let otherOrigin = RESTError(
    403,
    "The server does not answer to pages of this origin: --allow-origin, or "
      + "DatabaseServerOptions.origins, allows it.")
}
