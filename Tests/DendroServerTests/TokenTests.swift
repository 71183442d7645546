import Dendro
import DendroServer
import DendroTestSupport
import Synchronization
import Testing

@Suite("serving: signed tokens")
struct TokenTests {
  /// The time of a server, which stands still.
  private final class Clock: Sendable {
    private let seconds: Mutex<Int64>
    init(_ seconds: Int64 = SignedTokens.issued + 10) { self.seconds = Mutex(seconds) }
    var now: Int64 {
      get { seconds.value }
      set { seconds.withLock { $0 = newValue } }
    }
  }

  private func options(
    _ clock: Clock = Clock(), keys: String? = nil, hasSecret: Bool = true
  ) -> (inout DatabaseServerOptions) -> Void {
    { options in
      options.authorizer = UsersAuthorizer()
      options.secret = "s3cret of administrators"
      options.tokens = TokenOptions()
      options.tokens?.secret = hasSecret ? SignedTokens.secret : nil
      options.tokens?.keySetFile = keys
      options.tokens?.issuer = "https://issuer.example"
      options.tokens?.audience = "app"
      options.clock = { clock.now }
    }
  }

  private func refusal(_ text: String) -> String { "{\n  \"error\" : \"\(text)\"\n}\n" }
  private let bad = "Could not parse auth token."
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  @Test("users sign in with HS256 and RS256, administrators with their secret")
  func good() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("keys.json", SignedTokens.keySet)
    try await serving(options(keys: file)) { served in
      let http = try served.client()
      #expect(try http("GET", "/a.json").body == refusal("Permission denied"))
      for token in [
        SignedTokens.rs256, SignedTokens.rs256OfTwo, SignedTokens.hs256,
        SignedTokens.hs256ManyAudiences,
      ] {
        #expect(try http("GET", "/a.json?auth=\(token)").body == "null")
        let client = try WebSocketClient(served)
        let answer = try client("auth", "{\"cred\":\"\(token)\"}")
        #expect(
          answer[0].hasPrefix("{\"s\":\"ok\",\"d\":{\"auth\":{\"iss\":\"https://issuer.example\""))
        #expect(answer[0].hasSuffix(",\"expires\":1700003600}}"))
        #expect(try client("p", "{\"p\":\"/b\",\"d\":1}") == [ok])
      }
      let administrator = ["Authorization": "Bearer s3cret of administrators"]
      #expect(try http("GET", "/.settings/rules.json", nil, administrator).status == 200)
      #expect(
        try http("GET", "/.settings/rules.json?auth=\(SignedTokens.hs256)").status == 401)
    }
  }

  @Test(
    "hostile tokens are refused",
    arguments: [
      SignedTokens.unsigned, SignedTokens.confused, SignedTokens.rs256OtherName,
      SignedTokens.rs256UnknownName, SignedTokens.rs256Critical, SignedTokens.rs256Unnamed,
      SignedTokens.hs256OtherSecret, SignedTokens.hs256Contradictory, SignedTokens.hs256Endless,
      SignedTokens.hs256Undated, SignedTokens.hs256Nobody, SignedTokens.hs256TextTime,
      String(SignedTokens.rs256.dropLast(2)), String(SignedTokens.hs256.dropLast()),
      String(SignedTokens.rs256.dropLast(342)), SignedTokens.rs256 + "A", "owner", "..", "a.b.c",
      SignedTokens.hs256.replacing("eyJpc3MiOiJ", with: "eyJpc3MiOiK"),
      "e30." + String(repeating: "A", count: 9000) + ".e30", "s3cret of administrator",
    ])
  func hostile(token: String) async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("keys.json", SignedTokens.keySet)
    try await serving(options(keys: file)) { served in
      let http = try served.client()
      let shown = token.replacing(" ", with: "%20")
      let answer = try http("GET", "/a.json?auth=\(shown)")
      #expect(answer.status == 401 && answer.body == refusal(bad))
      #expect(try http("GET", "/a.json", nil, ["Authorization": "Bearer \(token)"]).status == 401)
      let client = try WebSocketClient(served)
      #expect(
        try client("auth", "{\"cred\":\"\(token)\"}")
          == ["{\"s\":\"invalid_token\",\"d\":\"\(bad)\"}"])
      #expect(try client("p", "{\"p\":\"/b\",\"d\":1}")[0].contains("permission_denied"))
    }
  }

  @Test("tokens that are for another service or of another issuer are refused")
  func otherClaims() async throws {
    for change in [
      { (tokens: inout TokenOptions) in tokens.issuer = "https://other.example" },
      { (tokens: inout TokenOptions) in tokens.audience = "ap" },
    ] {
      try await serving({ all in
        options()(&all)
        all.tokens.map { tokens in
          var tokens = tokens
          change(&tokens)
          all.tokens = tokens
        }
      }) { served in
        let answer = try served.client()("GET", "/a.json?auth=\(SignedTokens.hs256)")
        #expect(answer.status == 401)
      }
    }
  }

  @Test("a token that has expired, or is not yet valid, is refused with its reason")
  func times() async throws {
    let clock = Clock()
    try await serving(options(clock)) { served in
      let http = try served.client()
      func answer(_ token: String, at time: Int64) throws -> String {
        clock.now = SignedTokens.issued + time
        return try http("GET", "/a.json?auth=\(token)").body
      }
      #expect(try answer(SignedTokens.hs256, at: 3599) == "null")
      #expect(try answer(SignedTokens.hs256, at: 3600) == refusal("Auth token is expired"))
      #expect(try answer(SignedTokens.hs256, at: -60) == "null")
      #expect(try answer(SignedTokens.hs256, at: -61) == refusal("Auth token is not yet valid"))
      #expect(
        try answer(SignedTokens.hs256Later, at: 100) == refusal("Auth token is not yet valid"))
      #expect(try answer(SignedTokens.hs256Later, at: 1800) == "null")
      clock.now = SignedTokens.issued + 4000
      #expect(
        try WebSocketClient(served)("auth", "{\"cred\":\"\(SignedTokens.hs256)\"}")
          == ["{\"s\":\"expired_token\",\"d\":\"Auth token is expired\"}"])
    }
  }

  @Test("when a token expires, its listens and streams end, and its writes are refused")
  func expiry() async throws {
    let clock = Clock()
    try await serving(options(clock)) { served in
      let client = try WebSocketClient(served)
      let other = try WebSocketClient(served)
      _ = try client("auth", "{\"cred\":\"\(SignedTokens.hs256)\"}")
      _ = try other("gauth", "{\"cred\":\"s3cret of administrators\"}")
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      let query = "\"q\":{\"l\":1,\"vf\":\"l\",\"i\":\".key\"}"
      _ = try client("q", "{\"p\":\"/w\",\(query),\"t\":1,\"h\":\"\"}")
      _ = try other("q", "{\"p\":\"/a\",\"h\":\"\"}")
      let stream = try served.stream("/a.json?auth=\(SignedTokens.hs256)")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}")
      let stays = try served.stream("/a.json?auth=s3cret%20of%20administrators")
      _ = try stays.event()
      clock.now = SignedTokens.issued + 3600
      served.server.endExpiredTokens()
      #expect(
        try client.push()
          == "\"a\":\"ac\",\"b\":{\"s\":\"expired_token\",\"d\":\"Auth token is expired\"}")
      let ends = try Set([client.push(), client.push()])
      #expect(
        ends == [
          "\"a\":\"c\",\"b\":{\"p\":\"a\"}",
          "\"a\":\"c\",\"b\":{\"p\":\"w\",\"q\":[{\"l\":1,\"vf\":\"l\",\"i\":\".key\"}]}",
        ])
      #expect(try stream.event() == "auth_revoked \"credential is no longer valid\"")
      #expect(throws: HTTPClient.Ended.self) { _ = try stream.event() }
      #expect(
        try other("p", "{\"p\":\"/a\",\"d\":1}") == ["\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":1}", ok])
      #expect(try stays.event() == "put {\"path\":\"/\",\"data\":1}")
      #expect(try client("p", "{\"p\":\"/a\",\"d\":2}")[0].contains("permission_denied"))
    }
  }

  @Test("revoked tokens sign their clients out, and are refused from then on")
  func revocation() async throws {
    let clock = Clock()
    try await serving(options(clock)) { served in
      let client = try WebSocketClient(served)
      _ = try client("auth", "{\"cred\":\"\(SignedTokens.hs256)\"}")
      let stream = try served.stream("/a.json?auth=\(SignedTokens.hs256)")
      _ = try stream.event()
      served.server.revokeTokens(ofUser: "bob")
      #expect(try client("p", "{\"p\":\"/a\",\"d\":null}") == [ok])
      served.server.revokeTokens(ofUser: "ada")
      #expect(
        try client.push()
          == "\"a\":\"ac\",\"b\":{\"s\":\"invalid_token\",\"d\":\"Auth token is revoked\"}")
      #expect(try stream.event() == "auth_revoked \"credential is no longer valid\"")
      #expect(
        try served.client()("GET", "/a.json?auth=\(SignedTokens.hs256)").body
          == refusal("Auth token is revoked"))
    }
  }

  @Test(
    "keys are read from a set, from certificates or from one text, and again if the file changes"
  )
  func keyFiles() async throws {
    let folder = try TemporaryFolder()
    func quoted(_ text: String) -> String { "\"" + text.replacing("\n", with: "\\n") + "\\n\"" }
    let file = try folder.write("keys", SignedTokens.publicKeyOfOne)
    try await serving(options(keys: file, hasSecret: false)) { served in
      let http = try served.client()
      func status(_ token: String) throws -> Int { try http("GET", "/a.json?auth=\(token)").status }
      #expect(try status(SignedTokens.rs256) == 200)
      #expect(try status(SignedTokens.rs256Unnamed) == 200)
      #expect(try status(SignedTokens.rs256OfTwo) == 401)
      #expect(try status(SignedTokens.hs256) == 401)
      #expect(try status(SignedTokens.confused) == 401)
      _ = try folder.write("keys", "{\"two\":\(quoted(SignedTokens.certificateOfTwo))}")
      #expect(try status(SignedTokens.rs256OfTwo) == 200)
      #expect(try status(SignedTokens.rs256) == 401)
      _ = try folder.write("keys", "nonsense")
      #expect(try status(SignedTokens.rs256OfTwo) == 200)
      _ = try folder.write("keys", SignedTokens.keySet)
      #expect(try status(SignedTokens.rs256) == 200)
      #expect(try status(SignedTokens.rs256Unnamed) == 401)
    }
  }

  @Test("secrets and keys that are too weak do not start a server")
  func weak() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("keys", SignedTokens.smallKeySet)
    let good = try folder.write("good", SignedTokens.keySet)
    for (complaint, change) in [
      (
        "the secret of tokens has less than 32 bytes",
        { (tokens: inout TokenOptions) in tokens.secret = "short" }
      ),
      (
        "has no public RSA key of at least 2048 bits",
        { (tokens: inout TokenOptions) in tokens.keySetFile = file }
      ),
      (
        "say the audience of this one",
        { (tokens: inout TokenOptions) in
          tokens.keySetFile = good
          tokens.audience = nil
        }
      ),
      (
        "cannot be read",
        { (tokens: inout TokenOptions) in tokens.keySetFile = folder.path + "/missing" }
      ),
    ] {
      let database = Database.inMemory()
      var options = DatabaseServerOptions.patient
      options.authorizer = UsersAuthorizer()
      var tokens = TokenOptions()
      tokens.audience = "app"
      change(&tokens)
      options.tokens = tokens
      await #expect {
        try await DatabaseServer.start(serving: database, options: options)
      } throws: { error in
        (error as? DatabaseServerError)?.message.contains(complaint) == true
      }
    }
  }

  @Test("what the authorizer no longer allows ends when the server is asked to look again")
  func reauthorization() async throws {
    final class Gate: Authorizer {
      let isOpen = Atomic<Bool>(true)
      func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
        request.path != "/a" || isOpen.load(ordering: .relaxed) ? .allow : .deny
      }
    }
    let gate = Gate()
    try await serving({ $0.authorizer = gate }) { served in
      let client = try WebSocketClient(served)
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      _ = try client("q", "{\"p\":\"/b\",\"h\":\"\"}")
      let stream = try served.stream("/a.json")
      _ = try stream.event()
      let stays = try served.stream("/b.json")
      _ = try stays.event()
      served.server.reauthorize()
      gate.isOpen.store(false, ordering: .relaxed)
      served.server.reauthorize()
      #expect(try client.push() == "\"a\":\"c\",\"b\":{\"p\":\"a\"}")
      #expect(try stream.event() == "cancel \"Permission denied\"")
      #expect(throws: HTTPClient.Ended.self) { _ = try stream.event() }
      #expect(
        try client("p", "{\"p\":\"/b\",\"d\":1}") == [
          "\"a\":\"d\",\"b\":{\"p\":\"b\",\"d\":1}", ok,
        ])
      #expect(try stays.event() == "put {\"path\":\"/\",\"data\":1}")
    }
  }

  @Test("credentials of emulators are believed at loopback addresses, or if that is asked for")
  func emulators() async throws {
    let owner = ["Authorization": "Bearer owner"]
    for (host, trusts, status) in [
      ("127.0.0.1", nil, 200), ("127.0.0.1", false, 401), ("0.0.0.0", nil, 401),
      ("0.0.0.0", true, 200),
    ] as [(String, Bool?, Int)] {
      try await serving({
        $0.host = host
        $0.authorizer = OpenAuthorizer()
        $0.trustsUnsignedTokens = trusts
      }) { served in
        let http = try served.client()
        #expect(try http("GET", "/.settings/rules.json", nil, owner).status == status)
        #expect(try http("GET", "/a.json?auth=\(SignedTokens.unsigned)").status == status)
        #expect(try http("GET", "/a.json").status == 200)
      }
    }
  }
}
