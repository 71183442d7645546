import DendroTree

/// Who sends a request.
package enum Identity: Hashable, Sendable {
  case anonymous
  /// A user of the app.
  case user(id: String, claims: String)
  /// May do everything.
  case administrator

  package var isAdministrator: Bool { self == .administrator }
}

/// Which credentials a server believes.
package enum CredentialPolicy: Sendable {
  /// As an emulator: every bearer is an administrator, and ID tokens need no signature. For loopback only.
  case trusting
  /// The secret is that of administrators; ID tokens are refused.
  case secret(String)
  /// No credential is believed.
  case none

  /// - Throws: `RESTError` with status 401 for a credential that cannot be used.
  package func identity(of credentials: Credentials) throws(RESTError) -> Identity {
    let identity = try claimed(by: credentials)
    guard let override = credentials.authOverride else { return identity }
    guard identity.isAdministrator else { throw .permissionDenied }
    return try Self.overridden(override)
  }

  private func claimed(by credentials: Credentials) throws(RESTError) -> Identity {
    switch self {
    case .trusting:
      if credentials.bearer != nil { return .administrator }
      guard let token = credentials.token else { return .anonymous }
      guard let user = UnsignedToken.user(of: token) else { throw .badToken }
      return user
    case .secret(let secret):
      guard let given = credentials.bearer ?? credentials.token else { return .anonymous }
      guard Self.isEqual(given, secret) else { throw .badToken }
      return .administrator
    case .none:
      guard credentials.bearer == nil, credentials.token == nil else { throw .badToken }
      return .anonymous
    }
  }

  /// Takes the same time wherever the two differ, so that a secret cannot be guessed byte by byte.
  private static func isEqual(_ a: String, _ b: String) -> Bool {
    let a = Array(a.utf8)
    let b = Array(b.utf8)
    var difference = a.count ^ b.count
    for index in a.indices { difference |= Int(a[index] ^ (index < b.count ? b[index] : 0)) }
    return difference == 0
  }

  private static func overridden(_ text: String) throws(RESTError) -> Identity {
    guard let claims = try? JSONParser.parse(text) else {
      throw .badRequest("auth_variable_override must be a JSON object or null")
    }
    if claims.isEmpty { return .anonymous }
    guard claims.isBranch else {
      throw .badRequest("auth_variable_override must be a JSON object or null")
    }
    guard let key = try? Key("uid"), let id = claims.child(key).text else {
      return .user(id: "", claims: text)
    }
    return .user(id: id, claims: text)
  }
}

/// An ID token without a signature, as emulators accept it.
package enum UnsignedToken {
  /// - Returns: nil where the text is no such token.
  package static func user(of token: String) -> Identity? {
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].isEmpty, let header = json(parts[0]),
      let claims = json(parts[1]), string("alg", header) == "none",
      let id = string("user_id", claims) ?? string("sub", claims)
    else { return nil }
    return .user(id: id, claims: JSONWriter.string(claims))
  }

  private static func json(_ part: Substring.UTF8View) -> Node? {
    guard let bytes = Base64.decode(part) else { return nil }
    return bytes.withUnsafeBytes { try? JSONParser.parse($0) }
  }

  private static func string(_ name: String, _ node: Node) -> String? {
    guard let key = try? Key(name) else { return nil }
    return node.child(key).text
  }
}

extension Node {
  /// The string of a leaf.
  fileprivate var text: String? { if case .string(let text)? = scalar { text } else { nil } }
}
