import DendroProtocol
import Testing

@Suite("identities")
struct IdentityTests {
  private func token(_ header: String, _ claims: String, _ signature: String = "") -> String {
    "\(Base64.encode(Array(header.utf8))).\(Base64.encode(Array(claims.utf8))).\(signature)"
  }

  private static let header = "{\"alg\":\"none\",\"type\":\"JWT\"}"

  @Test("a trusting server accepts every bearer, and every token without checking its signature")
  func trusting() throws {
    let policy = CredentialPolicy.trusting
    #expect(try policy.identity(of: Credentials()) == .anonymous)
    #expect(try policy.identity(of: Credentials(bearer: "owner")) == .administrator)
    let good = token(Self.header, "{\"user_id\":\"ada\",\"sub\":\"x\",\"exp\":3600}")
    guard case .user(let id, _, _) = try policy.identity(of: Credentials(token: good)) else {
      Issue.record("no user")
      return
    }
    #expect(id == "ada")
    let signed = token("{\"alg\":\"RS256\"}", "{\"sub\":\"bob\",\"exp\":1}", "sig0")
    guard case .user("bob", _, _) = try policy.identity(of: Credentials(token: signed)) else {
      Issue.record("no user")
      return
    }
  }

  @Test("the scheme of the header is Bearer in letters of any case, and the token as it stands")
  func scheme() throws {
    func credentials(_ header: String) throws -> Credentials {
      var headers = HTTPHeaders()
      headers.append("authorization", header)
      return Credentials(try RequestTarget("/a.json"), headers)
    }
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
      #expect(try credentials("\(scheme) Owner").bearer == "Owner")
      #expect(try credentials("\(scheme)   Owner ").bearer == "Owner")
    }
    for header in ["Basic Owner", "Bearer", "bearerOwner", ""] {
      #expect(try credentials(header).bearer == nil)
    }
  }

  @Test("tokens that a trusting server refuses")
  func refused() {
    for bad in [
      "", "x", "a.b.", "..", token("{}", "{\"sub\":\"a\"}"), token(Self.header, "{}"),
      token(Self.header, "["),
    ] {
      #expect(throws: RESTError.badToken) {
        try CredentialPolicy.trusting.identity(of: Credentials(token: bad))
      }
    }
  }

  @Test("a secret makes an administrator, and nothing else does")
  func secret() throws {
    let policy = CredentialPolicy.secret("s3cret")
    #expect(try policy.identity(of: Credentials()) == .anonymous)
    #expect(try policy.identity(of: Credentials(bearer: "s3cret")) == .administrator)
    #expect(try policy.identity(of: Credentials(token: "s3cret")) == .administrator)
    for wrong in ["owner", "s3cre", "s3cret ", "S3cret"] {
      #expect(throws: RESTError.badToken) { try policy.identity(of: Credentials(bearer: wrong)) }
    }
  }

  @Test("only administrators may ask as another user")
  func override() throws {
    let policy = CredentialPolicy.trusting
    func identity(_ text: String) throws -> Identity {
      try policy.identity(of: Credentials(bearer: "owner", authOverride: text))
    }
    #expect(try identity("null") == .anonymous)
    // Names of claims are any strings, unlike keys of the data.
    for variable in ["{\"uid\":\"u1\"}", "{\"uid\":\"u1\",\"https://a.b/c\":{\"$\":[1]}}"] {
      let standIn = try identity(variable)
      #expect(standIn == .standIn(variable))
      guard case .standIn("u1", _, _) = standIn else {
        Issue.record("\(standIn)")
        continue
      }
    }
    #expect(throws: RESTError.self) { try identity("5") }
    #expect(throws: RESTError.permissionDenied) {
      try policy.identity(of: Credentials(authOverride: "null"))
    }
  }
}
