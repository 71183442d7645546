import DendroTestSupport
import Foundation
import Testing

/// The verb `rules`: what it says of rules, of tests, and of one request.
@Suite("dendro: rules")
struct RulesTests {
  private let dendro: Tool
  private var folder: Folder { dendro.folder }

  init() throws {
    dendro = Tool(folder: try Folder())
    try folder.write(
      """
      {
        // Who may what.
        "rules": {
          "users": {"$uid": {
            ".read": true,
            ".write": "auth.uid === $uid",
            ".validate": "newData.hasChildren(['name'])"
          }}
        }
      }
      """, to: "rules.json")
  }

  @Test("check says errors with their places, and what is probably not meant")
  func check() throws {
    let good = try dendro("rules", "check", "rules.json")
    #expect(good.status == 0 && good.output == "good\n", "\(good.output)\(good.errors)")
    try folder.write(#"{"rules":{".write":true,"a":{".write":"x"}}}"#, to: "bad.json")
    let bad = try dendro("rules", "check", "bad.json")
    #expect(bad.status == 65 && bad.errors.contains("bad.json:1:40: Unknown variable 'x'."))
    try folder.write(#"{"rules":{".write":true}}"#, to: "open.json")
    let open = try dendro("rules", "check", "open.json")
    #expect(open.status == 0)
    #expect(open.output.contains("open.json:1:"), "\(open.output)")
    #expect(open.output.contains("Any client may write the whole database."))
    #expect(!open.output.contains("good"))
    let json = try dendro("rules", "check", "bad.json", "--json")
    #expect(json.status == 65 && json.object["good"] as? Bool == false)
    #expect((json.object["error"] as? [String: Any])?["column"] as? Int == 40)
  }

  @Test("test judges each case, shows the rules on the way of those that fail, and counts")
  func test() throws {
    try folder.write(
      #"""
      {"data": {"users": {"ada": {"name": "Ada"}}},
       "cases": [
        {"name": "own", "as": {"uid": "ada"}, "operation": "set", "path": "users/ada/name",
         "value": "A", "expect": "allow"},
        {"name": "another's\u001b[31m", "as": {"uid": "bob"}, "operation": "set", "path": "users/ada/name",
         "value": "B", "expect": "allow"}]}
      """#, to: "tests.json")
    let outcome = try dendro("rules", "test", "rules.json", "tests.json", "--coverage")
    #expect(outcome.status == 1)
    #expect(outcome.output.contains("ok    own\n"), "\(outcome.output)")
    #expect(outcome.output.contains("1 of 2 passed\n"))
    #expect(outcome.output.contains("auth.uid = \"bob\"\n"))
    #expect(outcome.output.contains("/users/$uid .write: true 1, false 1, error 0\n"))
    #expect(!outcome.output.contains("\u{1B}"), "nothing that a terminal obeys")
    let json = try dendro("rules", "test", "rules.json", "tests.json", "--json", "--coverage")
    #expect(
      (json.object["cases"] as? [[String: Any]])?.map { $0["passed"] as? Bool } == [true, false])
    #expect((json.object["rules"] as? [Any])?.count == 3)
    try folder.write(#"{"cases": [{"expect": "perhaps"}]}"#, to: "wrong.json")
    #expect(try dendro("rules", "test", "rules.json", "wrong.json").status == 65)
  }

  @Test("explain shows each rule on the way, and the verdict")
  func explain() throws {
    try dendro("set", "db", "/users/ada", #"{"name":"Ada"}"#)
    func explain(_ words: String...) throws -> Tool.Outcome {
      try dendro.run(["rules", "explain", "db", "--rules", "rules.json"] + words)
    }
    let ada = #"{"uid":"ada"}"#
    let allowed = try explain("--as", ada, "--write", "/users/ada/name", "\"A\"")
    #expect(allowed.status == 0 && allowed.output.contains("\nallowed, "), "\(allowed.output)")
    let invalid = try explain("--as", ada, "--write", "/users/ada/name", "null")
    #expect(invalid.status == 0, "what becomes empty is not validated: \(invalid.output)")
    let other = try explain("--as", "null", "--write", "/users/ada", #"{"name":"B"}"#, "--json")
    #expect(other.status == 1 && other.object["allowed"] as? Bool == false)
    let rule = try #require((other.object["rules"] as? [[String: Any]])?.first)
    #expect(rule["rule"] as? String == "/users/$uid" && rule["result"] as? String == "false")
    #expect(try explain("--read", "/users/ada").status == 0)
    #expect(try explain("--read", "/users").status == 1)
    let missing = try dendro(
      "rules", "explain", "nowhere", "--rules", "rules.json", "--read", "/users/ada")
    #expect(missing.status == 69, "\(missing.errors)")
  }

  @Test(
    "words that do not go together",
    arguments: [
      ["rules"], ["rules", "check"], ["rules", "judge", "rules.json"],
      ["rules", "check", "rules.json", "more"], ["rules", "test", "rules.json"],
      ["rules", "check", "rules.json", "--coverage"],
      ["rules", "explain", "db", "--read", "/a"],
      ["rules", "explain", "db", "--rules", "rules.json"],
      ["rules", "explain", "db", "--rules", "rules.json", "--read", "/a", "--write", "/a", "1"],
      ["rules", "explain", "db", "--rules", "rules.json", "--write", "/a"],
      ["rules", "explain", "db", "--rules", "rules.json", "--read", "/a", "--as", "7"],
      ["rules", "explain", "db", "--rules", "rules.json", "--read", "/a#"],
    ])
  func usage(words: [String]) throws {
    let outcome = try dendro.run(words)
    #expect(outcome.status == 64, "\(outcome.errors)")
  }
}
