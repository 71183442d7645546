/// Which ID tokens a server believes: signed JSON Web Tokens that say who a user is.
///
/// Without a secret and without keys no token is believed. A token has to have the claims `exp` and `iat` (seconds
/// since 1970), and `sub` or `user_id`, the user's id of 1 to 128 bytes. Tokens above 8 KiB are refused. What else
/// they claim is passed on to the ``Authorizer``.
public struct TokenOptions: Sendable {
  /// The secret of tokens that are signed with HS256: at least 32 bytes of UTF-8.
  public var secret: String?
  /// The path of a file with the public keys of tokens that are signed with RS256, each of at least 2048 bits: a
  /// JSON Web Key Set, an object of PEM texts (certificates or public keys) by key name, or one PEM text.
  ///
  /// If the file changes, the next token is checked with its new keys. If it cannot be read then, the keys
  /// of before stay.
  public var keySetFile: String?
  /// The URL of such keys, in place of a file: with `https`, or with `http` and a loopback address.
  ///
  /// They are fetched when the server starts, and again when they are no longer fresh: after `max-age` of
  /// `Cache-Control`, which counts as at least a minute and at most a day, or after an hour if the answer has
  /// none. A token that names a key that is not there is refused and has them fetched, at most once a minute. A
  /// fetch takes at most 10 seconds and 1 MiB, and follows no redirection. If it fails, the keys of before stay,
  /// ``DatabaseServerOptions/errorLog`` gets the reason, and the next one follows after a minute; a server whose
  /// first fetch fails believes no token until then.
  ///
  /// It needs libcurl, which is loaded only if a URL is given.
  public var keySetURL: String?
  /// What the claim `iss` has to be; nil, the default, for anything.
  public var issuer: String?
  /// What the claim `aud` has to be, or to contain. Needed with keys, which may sign the tokens of other apps as well; nil,
  /// the default, for anything.
  public var audience: String?

  /// No tokens.
  public init() {}
}
