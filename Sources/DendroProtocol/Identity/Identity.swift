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

/// Which credentials a server believes that checks no signatures.
package enum CredentialPolicy: Sendable {
  /// As an emulator: every bearer is an administrator, and no signature of an ID token is looked at. For loopback only.
  case trusting
  /// The secret is that of administrators; ID tokens are refused.
  case secret(String)
  /// No credential is believed.
  case none

  /// - Throws: `RESTError` with status 401 for a credential that cannot be used.
  package func identity(of credentials: Credentials) throws(RESTError) -> Identity {
    let identity = try claimed(by: credentials)
    return try credentials.overriding(identity)
  }

  private func claimed(by credentials: Credentials) throws(RESTError) -> Identity {
    switch self {
    case .trusting:
      if credentials.bearer != nil { return .administrator }
      guard let token = credentials.token else { return .anonymous }
      // An emulator checks neither the signature nor the expiry: an app with a real sign-in sends production's tokens.
      guard let token = IDToken(token), let id = token.userID else { throw .badToken }
      return .user(id: id, claims: token.claims)
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
  package static func isEqual(_ a: String, _ b: String) -> Bool {
    let a = Array(a.utf8)
    let b = Array(b.utf8)
    var difference = a.count ^ b.count
    for index in a.indices { difference |= Int(a[index] ^ (index < b.count ? b[index] : 0)) }
    return difference == 0
  }
}

extension Credentials {
  /// The identity that an administrator asks as.
  package func overriding(_ identity: Identity) throws(RESTError) -> Identity {
    guard let authOverride else { return identity }
    guard identity.isAdministrator else { throw .permissionDenied }
    return try Self.overridden(authOverride)
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

extension Node {
  /// The string of a leaf.
  fileprivate var text: String? { if case .string(let text)? = scalar { text } else { nil } }
}
