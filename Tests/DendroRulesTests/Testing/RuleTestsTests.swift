import DendroRules
import Testing

@Suite("Tests of rules")
struct RuleTestsTests {
  private static let rules = """
    {
      "rules": {
        "users": {
          "$uid": {
            ".read": "auth.uid === $uid || query.limitToFirst <= 10",
            ".write": "auth.uid === $uid && auth.token.email != null",
            ".validate": "newData.hasChildren(['name']) && newData.child('at').val() <= now"
          }
        },
        "closed": {".write": false}
      }
    }
    """

  private static let tests = """
    {"data": {"users": {"ann": {"name": "Ann", "n": 1}}},
     "cases": [
       {"name": "own", "as": {"uid": "ann", "email": "a@b.c"}, "operation": "set", "path": "users/ann",
        "value": {"name": "Anna", "at": {".sv": "timestamp"}}, "now": 5, "expect": "allow"},
       {"name": "late", "as": {"sub": "ann", "email": "a@b.c"}, "operation": "set", "path": "/users/ann",
        "value": {"name": "Anna", "at": 6}, "now": 5, "expect": "deny"},
       {"name": "variable", "as": {"uid": "ann", "token": {"email": "x"}}, "operation": "update", "path": "users",
        "value": {"ann/at": 1, "ann/n": {".sv": {"increment": 2}}}, "now": 5, "expect": "allow"},
       {"name": "few", "as": null, "operation": "read", "path": "users/bob", "query":
        {"orderBy": "$key", "limitToFirst": 10, "startAt": "a", "endAt": 2, "equalTo": null}, "expect": "allow"},
       {"name": "all", "as": null, "operation": "read", "path": "users/bob", "expect": "deny"},
       {"as": {"user_id": "ann", "email": "x"}, "operation": "remove", "path": "users/ann", "expect": "allow"},
       {"name": "priority", "as": {"uid": "ann", "email": "x"}, "operation": "setPriority", "path": "users/ann",
        "value": 3, "expect": "deny"}
     ]}
    """

  @Test("cases are judged, each against the same data")
  func run() throws {
    let tests = try RuleTests(Self.tests)
    let report = tests.run(try Rules(Self.rules))
    #expect(report.results.map(\.isPassed) == Array(repeating: true, count: 7), "\(report)")
    #expect(report.isPassed)
    #expect(report.results[5].case.name == "case 6")
    #expect(report.description.hasSuffix("ok    priority\n7 of 7 passed\n"))
    #expect(tests.data.child("users").child("ann").child("n").scalar == 1)
    #expect(tests.cases[3].position == TextPosition(line: 9, column: 4))
  }

  @Test("a case that fails comes with its trace")
  func failing() throws {
    let rules = try Rules("{\"rules\": {\".read\": \"auth.uid == 'ann'\"}}")
    let tests = try RuleTests(
      "{\"cases\": [{\"name\": \"n\", \"operation\": \"read\", \"expect\": \"allow\"}]}")
    let report = tests.run(rules)
    #expect(!report.isPassed)
    #expect(
      report.description == """
        FAIL  n
              expected to be allowed: read 
              /  .read (1:22): false
                auth.uid == 'ann'
                  auth.uid = null
                  auth.uid == 'ann' = false
              denied, 2 steps
        0 of 1 passed

        """)
  }

  @Test("coverage: how often each rule and each part had which value")
  func coverage() throws {
    let coverage = try RuleTests(Self.tests).run(try Rules(Self.rules)).coverage
    #expect(
      coverage.description == """
        5:19  /users/$uid .read: true 1, false 0, error 1
        6:20  /users/$uid .write: true 5, false 0, error 0
        7:23  /users/$uid .validate: true 2, false 1, error 1
        10:26  /closed .write: true 0, false 0, error 0

        """)
    let read = coverage.rules[0]
    let part = try #require(read.parts.first { $0.source == "query.limitToFirst" })
    #expect(part.values == ["10": 1, "null": 1])
    #expect(part.evaluationCount == 2)
    #expect(part.position == TextPosition(line: 5, column: 40))
    #expect(coverage.lines.map(\.number) == [5, 6, 7, 10])
    #expect(coverage.lines.map { $0.evaluatedCount == $0.count } == [true, true, true, false])
  }

  @Test(
    "what is refused",
    arguments: [
      ("[]", "1:1: Expected '{'."), ("{}", "1:1: Expected 'cases', an array."),
      ("{\"cases\": [], \"x\": 1}", "1:15: Unknown member 'x'."),
      ("{\"cases\": [1]}", "1:12: Expected '{'."),
      ("{\"cases\": [],}", "1:14: Expected '\"'."),
      ("{\"data\": {\"a.b\": 1}, \"cases\": []}", nil),
      (
        "{\"cases\": [{}]}", "1:12: Expected 'operation': read, set, update, remove or setPriority."
      ),
      (
        "{\"cases\": [{\"operation\": \"get\"}]}",
        "1:26: Expected 'operation': read, set, update, remove or setPriority."
      ),
      ("{\"cases\": [{\"operation\": \"read\"}]}", "1:12: Expected 'expect': allow or deny."),
      (
        "{\"cases\": [{\"operation\": \"read\", \"path\": 1}]}",
        "1:42: Expected a string as 'path'."
      ),
      ("{\"cases\": [{\"operation\": \"read\", \"path\": \"a.b\"}]}", nil),
      (
        "{\"cases\": [{\"operation\": \"read\", \"now\": 1.5}]}",
        "1:41: Expected a whole number as 'now'."
      ),
      (
        "{\"cases\": [{\"operation\": \"read\", \"as\": 1}]}",
        "1:40: Expected null or an object as 'as'."
      ),
      ("{\"cases\": [{\"operation\": \"set\", \"expect\": \"deny\"}]}", "1:12: Expected 'value'."),
      (
        "{\"cases\": [{\"operation\": \"set\", \"value\": {\"a#\": 1}, \"expect\": \"deny\"}]}", nil
      ),
      (
        "{\"cases\": [{\"operation\": \"update\", \"value\": {\"a\": 1, \"a/b\": 1}, \"expect\": \"deny\"}]}",
        nil
      ),
      (
        "{\"cases\": [{\"operation\": \"read\", \"expect\": \"deny\", \"query\": {\"startAt\": []}}]}",
        "1:73: Expected a string, a number, a boolean or null as 'startAt'."
      ),
      (
        "{\"cases\": [{\"operation\": \"read\", \"expect\": \"deny\", \"query\": {\"limit\": 1}}]}",
        "1:62: Unknown member 'limit'."
      ),
    ] as [(String, String?)])
  func refused(text: String, description: String?) {
    let error = #expect(throws: RuleTextError.self) { try RuleTests(text) }
    if let description { #expect(error?.description == description) }
  }
}
