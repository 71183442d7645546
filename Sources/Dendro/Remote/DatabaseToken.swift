/// By what a database that keeps in step with a server signs in there.
public struct DatabaseToken: Sendable {
  package enum Kind: Sendable {
    case user(String)
    case administrator(String, override: String?)
  }

  package let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// The ID token of a user, a JSON Web Token.
  public static func user(_ token: String) -> DatabaseToken { DatabaseToken(.user(token)) }

  /// The token of an administrator: an OAuth access token, or `owner` for an emulator.
  public static func administrator(_ token: String) -> DatabaseToken {
    DatabaseToken(.administrator(token, override: nil))
  }
}
