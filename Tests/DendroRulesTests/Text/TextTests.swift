import DendroRules
import Testing

@Suite("The text of rules")
struct TextTests {
  @Test(
    "the lenient dialect",
    arguments: [
      "{\"rules\": {}} // end", "// begin\n{\"rules\": /* within */ {}}", "/**/{\"rules\":{}}/***/",
      "{\"rules\": {\".read\": true,},}", "{\"rules\": {\".indexOn\": [\"a\", \"b\",]}}",
      "{\"rules\": {\".read\": \"true\n&&\r\n\ttrue\"}}", "\u{FEFF}{\"rules\": {}}",
      "{\"rules\": {\"a\\u00e9\\ud83d\\ude00\": {}}}", " \r\n\t{ \"rules\" : { } } ",
      "{\"rules\": {\".read\": \"'\\\"\\\\\\/\\b\\f\\n\\r\\t' == ''\"}}",
    ])
  func accepted(text: String) { #expect(refusal(ofText: text) == nil) }

  @Test(
    "what is refused",
    arguments: [
      ("{\"rules\": {\".read\": true,, \".write\": true}}", "Expected '\"'."),
      ("{,\"rules\": {}}", "Unexpected ','."), ("{\"rules\": {,}}", "Unexpected ','."),
      ("{\"rules\": {\".read\": \"true \\\n\"}}", "Invalid escape: '\\\n'"),
      ("{\"rules\": {\".read\": \"'\\x'\"}}", "Invalid escape: '\\x'"),
      ("{\"rules\": {\".read\": \"'\\u12g4'\"}}", "Invalid escape: '\\u'"),
      ("{\"rules\": {}} x", "Unexpected 'x'."), ("", "Unexpected end of text."),
      ("{\"rules\": {}", "Expected ',' or '}'."), ("{\"rules\" {}}", "Expected ':'."),
      ("{\"rules\": {\".read\": tru}}", "Unexpected 't'."),
      ("{\"rules\": {\".indexOn\": [\"a\" \"b\"]}}", "Expected ',' or ']'."),
      ("{\"rules\": {\".read\": 01}}", "Unexpected '1'."),
      ("{\"rules\": {\".read\": -}}", "Unexpected '}'."),
      ("{\"rules\": {\".read\": \"true}}", "Unterminated string."),
      ("{\"rules\": /* {}}", "Unterminated comment."), ("{\"rules\": / {}}", "Unexpected '/'."),
      ("{\"rules\": {\".read\": \"\u{1}\"}}", "Control character in a string."),
    ])
  func refused(text: String, message: String) { #expect(refusal(ofText: text) == message) }

  @Test("the text is kept as it is")
  func kept() throws {
    let text = "// mine\n{\"rules\": {},}\n"
    #expect(try Rules(text).text == text)
  }

  @Test(
    "errors have line and column, counted from 1",
    arguments: [
      ("{\"rules\": {\n  \"a\": {\".read\": 1}}}", "2:18"),
      ("{\"rules\":\r\n{\".read\": \"foo\"}}", "2:12"),
      ("{\"rules\": {\".read\": \"true &&\n  foo\"}}", "2:3"),
      ("{\"rules\": {\"é😀\": 1}}", "1:18"),
      // An escape is one place, wherever the bytes that it means are.
      ("{\"rules\": {\".read\": \"\\n\\n foo\"}}", "1:27"),
      ("{\"rules\": {\".read\": \"'\\u00e9' == foo\"}}", "1:34"),
      ("", "1:1"), ("{\n\n", "3:1"),
    ])
  func position(text: String, position: String) {
    let error = #expect(throws: RuleTextError.self) { try Rules(text) }
    #expect(error?.position.description == position)
    #expect(error?.description == "\(position): \(error?.message ?? "")")
  }

  @Test("positions in a long line")
  func longLine() throws {
    let text =
      "{\"rules\": {\(String(repeating: "\"é\": {}, ", count: 5_000))\".read\": \"foo\"}}"
    let error = #expect(throws: RuleTextError.self) { try Rules(text) }
    let column = text.unicodeScalars.count - "foo\"}}".count + 1
    #expect(error?.position == TextPosition(line: 1, column: column))
  }

  @Test("300 KB are accepted, and one byte more is not")
  func limit() {
    let rules = "{\"rules\": {}}"
    let space = String(repeating: " ", count: RuleLimits.textBytes - rules.utf8.count)
    #expect(refusal(ofText: space + rules) == nil)
    #expect(
      refusal(ofText: space + rules + " ")
        == "The rules have 307201 bytes; the limit is 307200.")
  }

  @Test("nesting is bounded", arguments: ["{\"a\":", "["])
  func nesting(opening: String) {
    #expect(
      refusal(ofText: String(repeating: opening, count: 50_000))
        == "Nested more than 100 levels deep.")
  }

  @Test("of two members with one name the last one counts")
  func duplicates() throws {
    let bench = try Bench(
      "{\"a\": {\".read\": true}, \".read\": true, \".read\": false, \"a\": {}}")
    #expect(try !bench.read("a"))
    #expect(
      bench.rules.warnings.map(\.description) == [
        "1:12: 'a' is there twice. The last one counts.",
        "1:34: '.read' is there twice. The last one counts.",
      ])
    let rules = try Rules("{\"rules\": {\".read\": \"now > 1\"}, \"rules\": {}}")
    #expect(
      rules.warnings.map(\.description) == ["1:2: 'rules' is there twice. The last one counts."])
  }
}
