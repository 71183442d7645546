/// The variable `auth`: who asks. Nil where a request takes one means that no user is signed in.
public struct RuleAuth: Hashable, Sendable {
  /// What `auth` is: an object.
  public let variable: JSONObject
  /// `auth.uid`, which rules ask for most.
  let userID: JSONValue

  /// Makes `auth` of any object: what an administrator says in place of it.
  public init(variable: JSONObject) {
    self.variable = variable
    userID = variable["uid"]
  }

  /// Makes `auth` of an ID token: `auth.token` is its claims, and `auth.provider` is
  /// `token.firebase.sign_in_provider`.
  ///
  /// - Parameters:
  ///   - userID: `auth.uid`; nil for the claim `user_id`, or `sub`.
  ///   - claims: those of the token.
  public init(userID: String? = nil, claims: JSONObject) {
    let id = userID.map { JSONValue.scalar(.string($0)) }
    let fallback = claims["user_id"] == .null ? claims["sub"] : claims["user_id"]
    self.init(
      variable: JSONObject([
        ("uid", id ?? fallback), ("token", .object(claims)),
        ("provider", claims["firebase"]["sign_in_provider"]),
      ]))
  }

  /// Parses `auth` from JSON, as ``RuleTests`` have it in `as`. `null` is nobody. An object with an object `token` is the
  /// variable `auth` itself; any other object is the claims of an ID token, with the user's id as `uid`, `user_id` or `sub`.
  ///
  /// - Throws: ``RuleTextError`` if the text is no JSON, or neither null nor an object.
  public static func parsed(_ text: String) throws(RuleTextError) -> RuleAuth? {
    guard let auth = RuleAuth.said(by: try JSONValue(parsing: text)) else {
      throw RuleTextError("Expected null or an object.", at: TextPosition(line: 1, column: 1))
    }
    return auth
  }

  /// Makes `auth` of a JSON value.
  ///
  /// - Returns: nil if the value is neither null nor an object. For null, the value inside is nil.
  static func said(by value: JSONValue) -> RuleAuth?? {
    switch value {
    case .null: return .some(nil)
    case .object(let object):
      if case .object = object["token"] { return RuleAuth(variable: object) }
      return RuleAuth(userID: object["uid"].string, claims: object)
    default: return nil
    }
  }

  /// Makes `auth` of a user without further claims.
  public init(userID: String) {
    self.init(userID: userID, claims: JSONObject([("sub", .scalar(.string(userID)))]))
  }
}
