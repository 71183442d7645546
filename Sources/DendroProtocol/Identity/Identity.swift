package import DendroRules

/// Who sends a request.
package enum Identity: Hashable, Sendable {
  case anonymous
  /// A user of the app, by a token with these claims, which are JSON.
  case user(id: String, claims: String, auth: RuleAuth)
  /// The identity that an administrator takes on; the variable `auth` is JSON.
  case standIn(id: String, variable: String, auth: RuleAuth)
  /// May do everything.
  case administrator

  package var isAdministrator: Bool { self == .administrator }

  /// The variable `auth` of rules; nil if no user is signed in.
  package var auth: RuleAuth? {
    switch self {
    case .anonymous, .administrator: nil
    case .user(_, _, let auth), .standIn(_, _, let auth): auth
    }
  }

  /// Makes the identity that an administrator takes on: anonymous if the variable is null.
  ///
  /// - Returns: nil if the text is neither null nor a JSON object.
  package static func standIn(_ variable: String) -> Identity? {
    switch try? JSONValue(parsing: variable) {
    case .null?: .anonymous
    case .object(let object)?:
      .standIn(
        id: object["uid"].string ?? "", variable: variable, auth: RuleAuth(variable: object))
    default: nil
    }
  }

  /// Makes a user of an ID token.
  ///
  /// - Returns: nil if the claims are no JSON object.
  package static func user(id: String, claims: String) -> Identity? {
    guard case .object(let object)? = try? JSONValue(parsing: claims) else { return nil }
    return .user(id: id, claims: claims, auth: RuleAuth(userID: id, claims: object))
  }
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
      guard let token = IDToken(token), let id = token.userID,
        let user = Identity.user(id: id, claims: token.claims)
      else { throw .badToken }
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
    guard let standIn = Identity.standIn(authOverride) else {
      throw .badRequest("auth_variable_override must be a JSON object or null")
    }
    return standIn
  }
}
