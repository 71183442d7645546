import DendroRules
import Testing

@Suite("Who asks")
struct RuleAuthTests {
  @Test("is read as tests of rules say it")
  func parsed() throws {
    #expect(try RuleAuth.parsed("null") == nil)
    #expect(try RuleAuth.parsed(#"{"uid":"ada"}"#)?.variable["uid"] == "ada")
    let claims = try RuleAuth.parsed(#"{"sub":"ada","admin":true}"#)
    #expect(claims?.variable["uid"] == "ada" && claims?.variable["token"]["admin"] == true)
    let whole = try RuleAuth.parsed(#"{"uid":"ada","token":{"a":1},"x":2}"#)
    #expect(whole?.variable["x"] == 2)
    for text in ["7", "[]", "{", ""] {
      #expect(throws: RuleTextError.self) { try RuleAuth.parsed(text) }
    }
  }
}
