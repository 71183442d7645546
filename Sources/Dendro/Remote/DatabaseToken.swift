/// The token with which a database signs in at its server.
public struct DatabaseToken: Sendable {
  package enum Kind: Sendable {
    case user(String)
    case administrator(String)
  }

  package let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// The ID token of a user, a JSON Web Token.
  public static func user(_ token: String) -> DatabaseToken { DatabaseToken(.user(token)) }

  /// An administrator's token: an OAuth access token. An emulator accepts the text `owner`, and so does a `dendro serve` that
  /// accepts every credential.
  public static func administrator(_ token: String) -> DatabaseToken {
    DatabaseToken(.administrator(token))
  }
}
