import DendroRules
import DendroTestSupport
import Testing

@Suite("Variables")
struct VariableTests {
  private static let ann = RuleAuth.user(
    "ann",
    [
      "email": "ann@example.org", "org": ["tier": "gold"], "roles": ["a", "b"], "level": 3,
      "length": 7, "a.b/c": true, "firebase": ["sign_in_provider": "password"],
    ])

  @Test(
    "auth of a user",
    arguments: [
      "auth != null", "auth.uid == 'ann'", "auth.provider == 'password'",
      "auth.token.sub == 'ann'", "auth.token.email.contains('@')", "auth.token.org.tier == 'gold'",
      "auth.token['a.b/c'] == true", "auth.token.roles[0] == 'a'", "auth.token.roles['1'] == 'b'",
      "auth.token.roles[2] == null", "auth.token.roles[-1] == null",
      "auth.token.roles[0.5 * 2] == 'b'",
      "auth.token.level >= 3", "auth.token.length == 7", "auth.uid.length == 3",
      "auth.token.org != null", "auth.token.org != 'gold'", "!(auth.token.org == auth.token.org)",
      "auth.uid.x == null", "auth.token.nothing.at.all == null", "auth.uid[0] == null",
      "auth['uid'] == 'ann'", "auth['u' + 'id'] == 'ann'",
    ])
  func user(expression: String) throws { #expect(try allows(expression, auth: Self.ann)) }

  @Test(
    "auth without a user",
    arguments: [
      "auth == null", "auth.uid == null", "auth.uid != 'x'", "auth.token.a.b.c == null",
      "auth.provider === null", "auth[0] == null", "auth['a']['b'] == null",
    ])
  func signedOut(expression: String) throws { #expect(try allows(expression)) }

  @Test("auth of other tokens")
  func others() throws {
    #expect(try allows("auth.provider == 'anonymous' && auth.uid == 'anon'", auth: .anonymous))
    #expect(try allows("auth.provider == null && auth.uid == 'x'", auth: RuleAuth(userID: "x")))
    let override = RuleAuth(variable: JSONObject([("uid", "worker"), ("admin", true)]))
    #expect(
      try allows("auth.uid == 'worker' && auth.admin == true && auth.token == null", auth: override)
    )
  }

  @Test("now")
  func now() throws {
    #expect(try allows("now == 1700000000123", now: 1_700_000_000_123))
    #expect(
      try allows(
        "now - 1000 < 1700000000000 && now + '' == '1700000000123'", now: 1_700_000_000_123))
    let bench = try Bench("{\"q\": {\".write\": true, \".validate\": \"newData.val() === now\"}}")
    #expect(try bench.set("q", "{\".sv\":\"timestamp\"}"))
    #expect(try !bench.set("q", "1001"))
    #expect(try bench.set("q", "1000"))
  }

  @Test("$ names")
  func names() throws {
    let bench = try Bench(
      """
      {"$a": {"x": {"$b": {"$c": {".read": "$a + '/' + $b + '/' + $c == 'é/😀/0123456789abcdefghijklmnop'"}}}}}
      """)
    #expect(try bench.read("é/x/😀/0123456789abcdefghijklmnop"))
    #expect(try !bench.read("é/x/b/0123456789abcdefghijklmnop"))
    #expect(try !bench.read("é/x/😀"))
  }

  @Test(
    "query of a plain read",
    arguments: [
      "query.orderByKey == false", "query.orderByValue == false", "query.orderByPriority == false",
      "!query.orderByKey", "query.orderByChild == null", "query.startAt == null",
      "query.endAt == null", "query.equalTo == null", "query.limitToFirst == null",
      "query.limitToLast == null",
    ])
  func plain(expression: String) throws {
    #expect(try allows(expression))
    // So it is in writes.
    #expect(try Bench("{\".write\": \(quotedJSON(expression))}").set("a", "1"))
  }

  @Test(
    "query",
    arguments: [
      ("query.orderByKey", RuleQuery(order: .key)),
      ("query.orderByValue", RuleQuery(order: .value)),
      ("query.orderByPriority && !query.orderByKey", RuleQuery(order: .priority)),
      ("query.orderByChild == 'a/b' && !query.orderByKey", RuleQuery(order: .child("a/b"))),
      ("query.startAt == 'a' && query.endAt == 2", RuleQuery(order: .key, startAt: "a", endAt: 2)),
      ("query.equalTo == true", RuleQuery(order: .value, equalTo: true)),
      ("query.limitToFirst <= 10", RuleQuery(limitToFirst: 10)),
      ("query.limitToLast + 1 == 11", RuleQuery(limitToLast: 10)),
    ])
  func query(expression: String, query: RuleQuery) throws {
    #expect(try allows(expression, query: query))
  }

  @Test("a limit fails for a plain read")
  func limit() throws {
    #expect(
      try failure("query.limitToFirst <= 10") == "Only two numbers or two strings can be compared.")
    #expect(try !allows("query.limitToFirst <= 10", query: RuleQuery(limitToFirst: 11)))
  }
}
