import DendroRules
import DendroTestSupport
import Testing

/// Strings are equal wherever their bytes lie: in the data, in a key, in `auth`, in the rules, or in what rules make.
@Suite("Where strings lie")
struct StringPlaceTests {
  static let keys = [
    "a", "fifteen-letters", "sixteen--letters", "twenty-three-letters-ab",
    "twenty-four-letters-abc",
    "7", "-7", "007", "-00", "2147483648", "é", "😀 and more", "\u{FFFD}\u{10FFFF}",
    String(repeating: "k", count: 127), String(repeating: "k", count: 128),
    String(repeating: "k", count: 768), String(repeating: "é", count: 384),
  ]

  @Test("a key, a leaf, a user and a constant", arguments: keys)
  func equal(key: String) throws {
    let same = [
      "$k", "data.val()", "auth.uid", "auth.token.sub", "auth.token.list[0]", quotedJSON(key),
      "query.startAt", "root.child('k/' + $k).val()", "('' + $k)", "data.val().replace('~', '')",
    ]
    let rules = same.flatMap { a in same.map { "\(a) == \($0)" } }.joined(separator: " && ")
    let auth = RuleAuth.user(key, ["list": [.scalar(.string(key))]])
    let tree = try JSONTree("{\"k\": {\(quotedJSON(key)): \(quotedJSON(key))}}")
    let request = try RuleRequest(
      reading: "k/\(key)", query: RuleQuery(order: .key, startAt: .string(key)), auth: auth,
      now: 0)
    for expression in [rules, "(\(rules)) == true"] {
      let text = rulesText(expression, at: ["k", "$k"])
      let verdict = try Rules(text).decide(request, data: tree, details: [.trace, .observations])
      #expect(verdict.isAllowed, "\(verdict.trace?.description ?? "")")
      #expect(verdict.observations?.locations == ["/k/\(key)"])
      #expect(verdict.observations?.hold(data: tree) == true)
      let other = try tree.setting("k/\(key)", to: quotedJSON(key + "x"))
      #expect(verdict.observations?.hold(data: other) == false)
    }
    let different = try Rules(rulesText("$k + 'x' == data.val()", at: ["k", "$k"]))
    #expect(!different.decide(request, data: tree).isAllowed)
  }

  @Test("a rule makes more strings than its first memory holds")
  func manyStrings() throws {
    let parts = (0..<200).map { "('part \($0) of ' + data.val() == 'part \($0) of a text')" }
    #expect(try allows(parts.joined(separator: " && "), quotedJSON("a text")))
    let sum = (0..<90).map { "('\($0), ' + data.val())" }.joined(separator: " + ")
    let expected = (0..<90).map { "\($0), a text" }.joined()
    #expect(try allows("\(sum) == \(quotedJSON(expected))", quotedJSON("a text")))
  }

  @Test("more looks than the first memory of observations holds")
  func manyLooks() throws {
    let looks = (0..<300).map { "data.child('child \($0)/below').val() != 'x'" }
    let bench = try Bench("{\"a\": {\".write\": \(quotedJSON(looks.joined(separator: " && ")))}}")
    let verdict = try bench.setting("a", "1", .observations)
    #expect(verdict.isAllowed)
    #expect(verdict.observations?.count == 300)
    #expect(verdict.observations?.locations.count == 300)
    let other = try JSONTree("{\"a\": {\"child 299\": {\"below\": 1}}}")
    let newData = try other.setting("a", to: "1")
    #expect(verdict.observations?.hold(data: bench.data, newData: newData) == true)
    #expect(verdict.observations?.hold(data: other, newData: newData) == false)
  }

  @Test("looks through the location that is written, and past it")
  func looksPastTheWrite() throws {
    let bench = try Bench(
      """
      {"a": {"b": {".write": "newData.exists() && newData.child('x').val() == 1",
       ".validate": "newData.parent().child('b/x').val() == 1 && newData.parent().parent().child('c').val() == 2"}}}
      """, "{\"c\": 2}")
    let verdict = try bench.setting("a/b", "{\"x\": 1}", .observations)
    #expect(verdict.isAllowed)
    #expect(verdict.observations?.locations == ["/c"])
  }
}
