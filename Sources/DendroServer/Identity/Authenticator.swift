import CDendroCrypto
import DendroPlatform
import DendroProtocol
import Synchronization

/// Finds out who a client is.
final class Authenticator: Sendable {
  private let secret: String?
  private let policy: CredentialPolicy
  private let tokens: SignedTokens?
  private let clock: @Sendable () -> Int64
  /// Users of whom earlier tokens are no longer believed, with the time in seconds since 1970.
  private let revocations = Mutex<[String: Int64]>([:])

  private struct SignedTokens: Sendable {
    let secret: [UInt8]?
    let keys: (any KeySource)?
    let rules: ClaimRules
  }

  init(_ server: DatabaseServerOptions) throws(DatabaseServerError) {
    secret = server.secret
    clock = server.clock
    tokens = try server.tokens.map { options throws(DatabaseServerError) in
      let secret = options.secret.map { Array($0.utf8) }
      if let secret, secret.count < 32 {
        throw DatabaseServerError("the secret of tokens has less than 32 bytes")
      }
      if options.keySetFile != nil || options.keySetURL != nil, options.audience == nil {
        throw DatabaseServerError(
          "the keys of tokens may sign those of other apps, too: say the audience of this one")
      }
      return SignedTokens(
        secret: secret, keys: try Self.keys(options, server),
        rules: ClaimRules(issuer: options.issuer, audience: options.audience))
    }
    if let secret {
      policy = .secret(secret)
    } else {
      let trusts = server.trustsUnsignedTokens ?? SocketAddress.isLoopback(server.host)
      policy = trusts ? .trusting : .none
    }
  }

  private static func keys(
    _ options: TokenOptions, _ server: DatabaseServerOptions
  ) throws(DatabaseServerError) -> (any KeySource)? {
    switch (options.keySetFile, options.keySetURL) {
    case (nil, nil): return nil
    case (let path?, nil): return try KeySetFile(path, report: server.report)
    case (nil, let text?):
      return try KeySetURL(
        try WebAddress(text), at: server.clock(), timeout: server.keySetTimeout,
        report: server.report)
    default:
      throw DatabaseServerError("the keys of tokens come from a file or from a URL, not from both")
    }
  }

  /// Whether credentials need no proof.
  var believesAll: Bool {
    if case .trusting = policy { tokens == nil } else { false }
  }

  /// Seconds since 1970.
  var now: Int64 { clock() }

  /// - Throws: `RESTError` with status 401 for a credential that cannot be used.
  func authentication(of credentials: Credentials) throws(RESTError) -> Authentication {
    guard let tokens else {
      var found = Authentication(try policy.identity(of: credentials))
      if credentials.bearer != nil || credentials.token != nil {
        found.voucher = secret.map { Self.voucher("secret", Array($0.utf8)) } ?? Self.belief
      }
      return found
    }
    if let secret, let given = credentials.bearer ?? credentials.token,
      CredentialPolicy.isEqual(given, secret)
    {
      var found = Authentication(try credentials.overriding(.administrator))
      found.voucher = Self.voucher("secret", Array(secret.utf8))
      return found
    }
    guard credentials.bearer == nil else { throw .badToken }
    guard let token = credentials.token else {
      return Authentication(try credentials.overriding(.anonymous))
    }
    var found = try user(of: token, tokens)
    found.identity = try credentials.overriding(found.identity)
    return found
  }

  private func user(
    of text: String, _ tokens: SignedTokens
  ) throws(RESTError) -> Authentication {
    guard let token = IDToken(text), isSigned(token, tokens) else { throw .badToken }
    var found = try tokens.rules.authentication(by: token, now: now)
    if isRevoked(found) { throw .revokedToken }
    found.voucher =
      token.algorithm == "HS256"
      ? tokens.secret.map { Self.voucher("HS256", $0) } : "RS256 \(token.keyID ?? "")"
    return found
  }

  // MARK: What vouches for a client

  /// That of a server which believes every credential.
  private static let belief = "belief"

  /// A name for a secret, from which it cannot be found.
  private static func voucher(_ kind: String, _ secret: [UInt8]) -> String {
    let trace = SHA1.digest(of: Array("dendro \(kind) ".utf8) + secret).prefix(4)
    return kind + " " + trace.map { String($0, radix: 16) }.joined(separator: "-")
  }

  /// Whether what has vouched for a client is still believed, when its token is not looked at any more.
  ///
  /// - Parameter voucher: of its authentication.
  func believes(_ voucher: String?) -> Bool {
    guard let voucher else { return true }
    if voucher == Self.belief { return believesAll }
    if let secret, voucher == Self.voucher("secret", Array(secret.utf8)) { return true }
    if let secret = tokens?.secret, voucher == Self.voucher("HS256", secret) { return true }
    let key = "RS256 "
    guard voucher.hasPrefix(key), let keys = tokens?.keys?.keys else { return false }
    let name = String(voucher.dropFirst(key.count))
    return keys.key(name.isEmpty ? nil : name) != nil
  }

  /// The server says which key belongs to which algorithm, never the token: a public key is no secret.
  private func isSigned(_ token: IDToken, _ tokens: SignedTokens) -> Bool {
    switch token.algorithm {
    case "HS256":
      guard let secret = tokens.secret else { return false }
      return dendro_is_signed_hs256(
        secret, Int32(secret.count), token.signedText, token.signedText.count, token.signature,
        token.signature.count) == 1
    case "RS256":
      guard let source = tokens.keys else { return false }
      guard let key = source.keys?.key(token.keyID) else {
        source.miss(at: now)
        return false
      }
      return key.hasSigned(token.signedText, token.signature)
    default: return false
    }
  }

  /// Called once a second.
  func refreshKeys() { tokens?.keys?.refresh(at: now) }

  /// Refreshes no keys any more.
  func end() { tokens?.keys?.end() }

  // MARK: The end of a token

  /// Believes no token of the user any more that was issued up to now.
  func revoke(user: String) {
    let now = now
    revocations.withLock { $0[user] = now }
  }

  private func isRevoked(_ authentication: Authentication) -> Bool {
    guard case .user(let id, _, _) = authentication.identity, let issued = authentication.issued
    else {
      return false
    }
    return revocations.withLock { $0[id].map { issued <= $0 } ?? false }
  }

  /// Why a client is no longer who it was; nil while it is.
  func end(of authentication: Authentication) -> RESTError? {
    if let expiry = authentication.expiry, expiry <= now { return .expiredToken }
    return isRevoked(authentication) ? .revokedToken : nil
  }
}

/// The system's clock in seconds since 1970.
func systemSeconds() -> Int64 { systemMilliseconds() / 1000 }

/// The system's clock in milliseconds since 1970.
///
/// It stands in a file that imports OpenSSL: to the compiler C's `timespec` may be a type of either module.
func systemMilliseconds() -> Int64 {
  var now = timespec()
  clock_gettime(CLOCK_REALTIME, &now)
  return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
}
