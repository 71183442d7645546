import DendroRules
import DendroTestSupport
import Testing

@Suite("Traces")
struct TraceTests {
  @Test("each rule on the way, with its place and the values of its parts")
  func trace() throws {
    var bench = try Bench(
      """
      {
        "users": {
          ".write": "auth.token.admin == true || false",
          "$uid": {
            ".write": "auth != null && auth.uid === $uid",
            ".validate": "newData.child('age').val() >= 18"
          }
        }
      }
      """)
    bench.auth = RuleAuth(userID: "ann")
    let verdict = try bench.setting("users/ann", "{\"age\":17}", .trace)
    let trace = try #require(verdict.trace)
    #expect(
      trace.description == """
        /users  .write (3:16): false
          auth.token.admin == true || false
            auth.token = an object
            auth.token.admin = null
            auth.token.admin == true = false
            auth.token.admin == true || false = false
        /users/ann  .write at /users/$uid (5:18): true
          auth != null && auth.uid === $uid
            auth = an object
            auth != null = true
            auth.uid = "ann"
            $uid = "ann"
            auth.uid === $uid = true
            auth != null && auth.uid === $uid = true
        /users/ann  .validate at /users/$uid (6:21): false
          newData.child('age').val() >= 18
            newData.child('age').val() = 17
            newData.child('age').val() >= 18 = false
        denied, \(verdict.stepCount) steps

        """)
    #expect(trace.evaluations.map(\.ruleLocation) == ["/users", "/users/$uid", "/users/$uid"])
    let step = try #require(trace.evaluations[1].steps.first { $0.source == "auth.uid" })
    #expect(step.position == TextPosition(line: 5, column: 34))
  }

  @Test("what is left out is missing, and a failure says why")
  func lazy() throws {
    let verdict = try decide(
      "true || auth.a == 1 ? auth.a.contains('x') : auth.b == 1", details: .trace)
    let evaluation = try #require(verdict.trace?.evaluations.first)
    #expect(
      evaluation.outcome == .failed("Only a string has a length and the methods of strings."))
    #expect(
      evaluation.steps.map { "\($0.source) = \($0.value)" } == [
        "true || auth.a == 1 = true", "auth.a = null",
      ])
    let text = try #require(verdict.trace?.description)
    #expect(text.contains("not true. Only a string has a length"))
  }

  @Test("no rule on the way")
  func nothing() throws {
    let verdict = try Bench("{\"b\": {\".write\": true}}").setting("a", "1", .trace)
    #expect(verdict.trace?.description == "There is no rule on the way.\ndenied, 0 steps\n")
  }

  @Test("values are shown on one line, and not too long")
  func values() throws {
    let verdict = try decide(
      "data.val() == '' || data.child('x').val() == 1 || 1/0 == 1 || now == 1.5 && true",
      quotedJSON("a\"b\\\u{1B}[31m\u{202E}\\n" + String(repeating: "x", count: 1_000)),
      details: .trace)
    let value = try #require(verdict.trace?.evaluations.first?.steps.first?.value)
    #expect(value.hasPrefix("\"a\\\"b\\\\\u{FFFD}[31m\u{FFFD}\\\\n"))
    #expect(value.count <= 201)
  }

  @Test("a character of a million scalars is cut as well")
  func hugeCharacter() throws {
    let text = "a" + String(repeating: "\u{301}", count: 1_000_000)
    let verdict = try decide("data.val() == ''", quotedJSON(text), details: .trace)
    let value = try #require(verdict.trace?.evaluations.first?.steps.first?.value)
    #expect(value.utf8.count < 1_000)
  }

  @Test("a long expression is cut in the parts, and a trace stays small")
  func long() throws {
    let expression = "'' == ''" + String(repeating: " + 'aaaaaaaaaa'", count: 15_000)
    let verdict = try decide(expression, details: .trace)
    let evaluation = try #require(verdict.trace?.evaluations.first)
    #expect(evaluation.steps.count <= 10_000)
    #expect(evaluation.steps.allSatisfy { $0.source.count <= 201 })
  }

  @Test("nothing is traced and observed unless it is asked for")
  func nothingAsked() throws {
    let verdict = try decide("data.exists()")
    #expect(verdict.trace == nil && verdict.observations == nil)
    #expect(verdict.stepCount == 2)
  }
}
