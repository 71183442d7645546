import DendroRules
import Testing

@Suite("Observations")
struct ObservationTests {
  private func observations(
    _ rules: String, _ data: String, _ path: String, _ value: String
  ) throws -> RuleObservations {
    let verdict = try Bench(rules, data).setting(path, value, .observations)
    return try #require(verdict.observations)
  }

  @Test("which locations were looked at")
  func locations() throws {
    let seen = try observations(
      """
      {"a": {".write": "root.child('x/y').val() == 1 && data.child('n').exists() && newData.child('n').isNumber()",
       ".validate": "newData.child('n').val() > 1 && newData.parent().child('b').hasChildren(['c', 'd'])"}}
      """, "{\"x\":{\"y\":1},\"a\":{\"n\":1},\"b\":{\"c\":1}}", "a", "{\"n\":2}")
    // What the write itself says is not among them.
    #expect(seen.locations == ["/a/n", "/b/c", "/b/d", "/x/y"])
    #expect(seen.inputs == [])
    #expect(seen.count == 4)
  }

  @Test("they hold for trees that agree, and for no others")
  func hold() throws {
    let rules =
      "{\"a\": {\".write\": \"data.val() + 1 == newData.val() && root.child('q').getPriority() == 7\"}}"
    let stored = "{\"a\":1,\"q\":{\".value\":0,\".priority\":7}}"
    let seen = try observations(rules, stored, "a", "2")
    func holds(_ json: String) throws -> Bool {
      let tree = try JSONTree(json)
      return seen.hold(data: tree, newData: try tree.setting("a", to: "2"))
    }
    #expect(try holds(stored))
    #expect(try holds("{\"a\":1,\"q\":{\"x\":5,\".priority\":7},\"other\":true}"))
    #expect(try !holds("{\"a\":2,\"q\":{\".value\":0,\".priority\":7}}"))
    // Rules can tell them apart where integers are large.
    #expect(try !holds("{\"a\":1.0,\"q\":{\".value\":0,\".priority\":8}}"))
    #expect(try !holds("{\"a\":1}"))
  }

  @Test("ancestors of a removal are seen in the new tree")
  func ancestors() throws {
    let rules = "{\"a\": {\".write\": true, \".validate\": \"newData.hasChildren(['b'])\"}}"
    let bench = try Bench(rules, "{\"a\":{\"b\":1,\"c\":1}}")
    let verdict = try bench.setting("a/c", "null", .observations)
    let seen = try #require(verdict.observations)
    #expect(verdict.isAllowed)
    for (stored, isSame) in [
      ("{\"a\":{\"b\":2,\"c\":1}}", true), ("{\"a\":{\"c\":1}}", false),
      ("{\"a\":{\"c\":1,\"d\":1}}", false),
    ] {
      let tree = try JSONTree(stored)
      #expect(seen.hold(data: tree, newData: try tree.setting("a/c", to: "null")) == isSame)
    }
  }

  @Test("what server values became is seen where the request says that there are any")
  func serverValues() throws {
    let rules = try Rules("{\"rules\": {\"a\": {\".write\": \"newData.child('n').val() < 5\"}}}")
    let tree = try JSONTree("{\"a\":{\"n\":3}}")
    let value = "{\"n\":{\".sv\":{\"increment\":1}}}"
    var request = try RuleRequest(setting: "a", now: 0)
    let newData = try tree.setting("a", to: value)
    let without = rules.decide(request, data: tree, newData: newData, details: .observations)
    #expect(without.observations?.count == 0)
    request.hasServerValues = true
    let with = rules.decide(request, data: tree, newData: newData, details: .observations)
    #expect(with.isAllowed && with.observations?.locations == ["/a/n"])
    let later = try JSONTree("{\"a\":{\"n\":4}}")
    let laterData = try later.setting("a", to: value)
    #expect(with.observations?.hold(data: later, newData: laterData) == false)
  }

  @Test(
    "which variables were looked at",
    arguments: [
      ("now > 1", .now), ("auth != null", .auth), ("query.orderByKey", .query),
      ("auth == null && now > 1", [.auth, .now]), ("false && now > 1", []),
      ("true || auth.x == 1", []),
    ] as [(String, RuleObservations.Inputs)])
  func inputs(expression: String, inputs: RuleObservations.Inputs) throws {
    let verdict = try decide(expression, details: .observations)
    #expect(verdict.observations?.inputs == inputs)
  }
}
