import DendroTree

/// A token that says who a user is: a JSON Web Token, taken apart. Nothing in it is believed yet.
package struct IDToken: Sendable {
  /// The name of the algorithm with which it says that it is signed.
  package let algorithm: String
  /// The name of the key.
  package let keyID: String?
  /// The claims, as JSON.
  package let claims: String
  /// What is signed.
  package let signedText: [UInt8]
  package let signature: [UInt8]
  private let members: JSONMembers

  /// Tokens above this are refused unread.
  package static let byteLimit = 8 << 10

  /// - Returns: nil if the text is no token.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.byteLimit else { return nil }
    let parts = Array(text.utf8).split(
      separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64.decode(parts[0]).flatMap({ JSONMembers($0[...]) }),
      let algorithm = header.string("alg"), let claims = Base64.decode(parts[1]),
      let members = JSONMembers(claims[...]),
      let claimsText = String(validating: claims, as: UTF8.self),
      let signature = Base64.decode(parts[2])
    else { return nil }
    // Extensions that have to be understood, and none is.
    if header["crit"] != nil { return nil }
    self.algorithm = algorithm
    keyID = header.string("kid")
    self.claims = claimsText
    self.members = members
    signedText = parts[0] + [UInt8(ascii: ".")] + parts[1]
    self.signature = signature
  }

  /// The user's id: `user_id` or else `sub`.
  package var userID: String? {
    guard let id = members.string("user_id") ?? members.string("sub"), !id.isEmpty,
      id.utf8.count <= 128
    else { return nil }
    return id
  }

  package var subject: String? { members.string("sub") }

  package var issuer: String? { members.string("iss") }

  /// Whom it is for.
  package var audience: [String] {
    if let one = members.string("aud") { return [one] }
    return members.strings("aud")
  }

  /// A time in seconds since 1970; nil if there is none.
  package func time(_ name: String) -> Int64? {
    guard let scalar = members.scalar(name).flatMap({ $0 }) else { return nil }
    return switch scalar {
    case .integer(let time): time
    case .double(let time) where abs(time) < 1e15: Int64(time.rounded(.down))
    default: nil
    }
  }
}

/// What the claims of a token have to be.
package struct ClaimRules: Hashable, Sendable {
  /// What `iss` has to be; nil for anything.
  package var issuer: String?
  /// What `aud` has to be or to contain; nil for anything.
  package var audience: String?
  /// By how many seconds the clocks of issuer and server may differ: a token that begins to be valid so much
  /// later is taken.
  package static let clockDifference: Int64 = 60

  package init(issuer: String? = nil, audience: String? = nil) {
    self.issuer = issuer
    self.audience = audience
  }

  /// - Parameters:
  ///   - token: whose signature was checked.
  ///   - now: seconds since 1970.
  /// - Returns: the user, and when the token was issued and when it expires.
  /// - Throws: `RESTError` with status 401.
  package func authentication(
    by token: IDToken, now: Int64
  ) throws(RESTError) -> Authentication {
    guard let expiry = token.time("exp"), let issued = token.time("iat"), let id = token.userID,
      token.subject ?? id == id, issuer == nil || token.issuer == issuer,
      audience.map({ token.audience.contains($0) }) ?? true
    else { throw .badToken }
    if now >= expiry { throw .expiredToken }
    for name in ["iat", "nbf", "auth_time"] {
      guard let time = token.time(name) else { continue }
      if time > now + Self.clockDifference { throw .earlyToken }
    }
    guard let user = Identity.user(id: id, claims: token.claims) else { throw .badToken }
    return Authentication(user, issued: token.time("auth_time") ?? issued, expiry: expiry)
  }
}

/// Who a client is, and for how long.
package struct Authentication: Hashable, Sendable {
  package var identity: Identity
  /// When the user signed in, in seconds since 1970; nil for what cannot be revoked.
  package var issued: Int64?
  /// When it ends, in seconds since 1970; nil for never.
  package var expiry: Int64?
  /// What vouches for it: the name of a key, or of a secret's trace. Nil if nothing has to.
  package var voucher: String?

  package static let anonymous = Authentication(.anonymous)

  package init(_ identity: Identity, issued: Int64? = nil, expiry: Int64? = nil) {
    self.identity = identity
    self.issued = issued
    self.expiry = expiry
  }
}
