import DendroRules
import Testing

@Suite("Warnings")
struct WarningTests {
  @Test(
    "what is allowed and probably not meant",
    arguments: [
      ("{\".read\": true}", ["1:21: Any client may read the whole database."]),
      ("{\".write\": \"true\"}", ["1:23: Any client may write the whole database."]),
      (
        "{\"a\": {\".read\": true, \"b\": {\".read\": \"auth != null\"}}}",
        ["1:49: The rule has no effect: '.read' of /a is true already."]
      ),
      (
        "{\"a\": {\".validate\": \"newData.exists()\"}}",
        ["1:32: No '.write' allows a write here, above or below: the rule is never evaluated."]
      ),
      (
        "{\"a\": {\".write\": false, \".validate\": true}}",
        ["1:48: No '.write' allows a write here, above or below: the rule is never evaluated."]
      ),
      (
        "{\"a\": {\".read\": \"'1' === 1\"}}",
        ["1:28: A string never equals a number: nothing is converted."]
      ),
      ("{\"a\": {\".validate\": true, \"b\": {\"$c\": {\".write\": \"now > 1\"}}}}", []),
      ("{\"a\": {\".write\": \"now > 1\", \"b\": {\".validate\": true}}}", []),
      ("{\"a\": {\".read\": true, \"b\": {\".write\": false}}}", []),
      ("{\".read\": \"auth != null\", \".write\": false}", []),
      ("{\"a\": {\".read\": \"auth.x == 1 && data.val() == null\"}}", []),
    ])
  func warnings(rules: String, expected: [String]) throws {
    #expect(try Bench(rules).rules.warnings.map(\.description) == expected)
  }

  @Test("at most 100, in the order of the text")
  func many() throws {
    let children = (0..<200).map { "\"k\($0)\": {\".read\": true}" }.joined(separator: ",")
    let warnings = try Bench("{\".read\": true, \(children)}").rules.warnings
    #expect(warnings.count == 100)
    #expect(warnings == warnings.sorted { $0.position < $1.position })
  }
}
