import DendroRules
import Testing

@Suite("DendroRules.md")
struct DendroRulesSamples {
  @Test("rules decide")
  func decide() throws {
    // sample
    let rules = try Rules(
      """
      {
        "rules": {
          "posts": {
            ".read": true,
            "$post": {
              ".write": "auth != null && (!data.exists() || data.child('author').val() == auth.uid)",
              ".validate": "newData.hasChildren(['author', 'text'])",
              "author": {".validate": "newData.val() == auth.uid"}
            }
          }
        }
      }
      """)
    let before = try JSONTree("{}")
    let after = try before.setting("posts/1", to: #"{"author": "ann", "text": "Hello"}"#)
    let request = try RuleRequest(setting: "posts/1", auth: RuleAuth(userID: "ann"), now: 0)
    let verdict = rules.decide(request, data: before, newData: after, details: .trace)
    print(verdict.isAllowed)
    // end
    #expect(verdict.isAllowed)
  }
}
