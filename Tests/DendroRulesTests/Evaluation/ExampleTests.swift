import DendroRules
import Testing

/// Whole rules with their verdicts, as the production service gives them.
@Suite("Examples")
struct ExampleTests {
  @Test(
    "expressions alone, signed out",
    arguments: [
      ("auth.uid !== 'x'", "null", true), ("auth.a.b == null", "null", true),
      ("auth.a.contains('x')", "null", false), ("auth.a.contains('x') || true", "null", false),
      ("true || auth.a.contains('x')", "null", true),
      ("data.child('n').val() > 1 || true", "null", false),
      ("data.child('n').val() > 1 || true", "{\"n\":4}", true),
      ("data.child('n').val() == '4'", "{\"n\":4}", false), ("'a' + 1 == 'a1'", "null", true),
      ("null == false", "null", false), ("(1/0 + '') == 'NaN'", "null", true),
      ("'aXbX'.replace('X', '') == 'ab'", "null", true), ("'ab'.matches(/B/i)", "null", true),
      ("root.parent().exists()", "null", false), ("data['exists']() == false", "null", true),
      ("data.hasChildren([])", "1", true), ("data.hasChildren([])", "null", true),
      ("query.orderByKey == false", "null", true),
    ])
  func expressions(expression: String, data: String, isAllowed: Bool) throws {
    #expect(try allows(expression, data) == isAllowed)
  }

  @Test("queries and users")
  func queries() throws {
    let limited = "query.limitToFirst <= 2"
    #expect(try !allows(limited))
    #expect(try allows(limited, query: RuleQuery(limitToFirst: 2)))
    #expect(try !allows(limited, query: RuleQuery(limitToFirst: 3)))
    let own = "query.orderByChild == 'owner' && query.equalTo == auth.uid"
    let me = RuleAuth(userID: "me")
    #expect(try allows(own, auth: me, query: RuleQuery(order: .child("owner"), equalTo: "me")))
    #expect(try !allows(own, auth: me, query: RuleQuery(order: .child("owner"), equalTo: "you")))
    #expect(try !allows(own, auth: me))
    #expect(
      try allows("auth.token.org.tier == 'gold'", auth: .user("a", ["org": ["tier": "gold"]])))
    #expect(try allows("auth.provider == 'anonymous'", auth: .anonymous))
  }

  @Test("trees of rules")
  func trees() throws {
    #expect(
      try Bench("{\"a\":{\".read\":true,\"b\":{\".read\":false}}}").read("a/b"))
    #expect(try !Bench("{\"a\":{\"b\":{\".read\":true}}}").read("a"))
    let hidden = try Bench("{\"t\":{\"s\":{\".write\":false},\"$k\":{\".write\":true}}}")
    #expect(try !hidden.set("t/s", "1"))
    #expect(try hidden.set("t/x", "1"))
    let invalid = try Bench("{\"t\":{\".write\":true,\"s\":{},\"$k\":{\".validate\":false}}}")
    #expect(try invalid.set("t/s", "1"))
    #expect(try !invalid.set("t/x", "1"))
  }

  @Test("a user's own location")
  func own() throws {
    var bench = try Bench("{\"u\":{\"$u\":{\".write\":\"$u === auth.uid\"}}}")
    bench.auth = RuleAuth(userID: "me")
    #expect(try bench.set("u/me", "1"))
    #expect(try !bench.set("u/you", "1"))
    bench.auth = nil
    #expect(try !bench.set("u/me", "1"))
  }

  @Test("required children")
  func required() throws {
    let rules = "{\"p\":{\".write\":true,\".validate\":\"newData.hasChildren(['x'])\"}}"
    #expect(try !Bench(rules).set("p/y/z", "1"))
    #expect(try Bench(rules, "{\"p\":{\"x\":1}}").set("p/y/z", "1"))
  }

  @Test("a counter")
  func counter() throws {
    let rules = "{\"c\":{\".write\":\"newData.val() == (data.exists() ? data.val() + 1 : 0)\"}}"
    #expect(try Bench(rules).set("c", "0"))
    #expect(try Bench(rules, "{\"c\":0}").set("c", "1"))
    #expect(try !Bench(rules, "{\"c\":1}").set("c", "1"))
    #expect(try Bench(rules, "{\"c\":9007199254740992}").set("c", "9007199254740993"))
  }

  @Test("times and priorities")
  func times() throws {
    let time = try Bench("{\"q\":{\".write\":true,\".validate\":\"newData.val() === now\"}}")
    #expect(try time.set("q", "{\".sv\":\"timestamp\"}"))
    #expect(try !time.set("q", "5"))
    let priority = try Bench(
      """
      {"w":{".write":true,".validate":"newData.getPriority() == 7 && newData.val() == 'w'"}}
      """)
    #expect(try priority.set("w", "{\".value\":\"w\",\".priority\":7}"))
  }
}
