import DendroRules
import DendroTestSupport
import Testing

@Suite("The structure of rules")
struct StructureTests {
  @Test(
    "what is refused, word for word",
    arguments: [
      ("{}", "Expected 'rules' property."), ("{\"rule\": {}}", "Expected 'rules' property."),
      ("{\"rules\": {}, \"x\": {}}", "Expected 'rules' property."), ("[]", "Expected '{'."),
      ("{\"rules\": true}", "Expected '{'."),
      (
        "{\"rules\": {\"$x\": {}, \"$y\": {}}}",
        "Cannot have multiple default rules ('$x' and '$y')."
      ),
      (
        "{\"rules\": {\".read\": 1}}",
        "Invalid rule expression.  Expected 'true', 'false', or an expression string."
      ),
      (
        "{\"rules\": {\".write\": {}}}",
        "Invalid rule expression.  Expected 'true', 'false', or an expression string."
      ),
      (
        "{\"rules\": {\".validate\": null}}",
        "Invalid rule expression.  Expected 'true', 'false', or an expression string."
      ),
      (
        "{\"rules\": {\".indexOn\": 1}}",
        "Invalid indexOn expression. Must be either a string or an array of strings"
      ),
      (
        "{\"rules\": {\".indexOn\": [\"a\", 1]}}",
        "Invalid indexOn expression. Must be either a string or an array of strings"
      ),
      ("{\"rules\": {\".valdiate\": \"true\"}}", "Expected '{'."),
      ("{\"rules\": {\"a\": \"true\"}}", "Expected '{'."),
      ("{\"rules\": {\"a\": [{}]}}", "Expected '{'."),
      (
        "{\"rules\": {\".valdiate\": {}}}",
        "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""
      ),
      (
        "{\"rules\": {\"a#b\": {}}}",
        "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""
      ),
      (
        "{\"rules\": {\"a/b\": {}}}",
        "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""
      ),
      (
        "{\"rules\": {\"$a.b\": {}}}",
        "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""
      ),
      (
        "{\"rules\": {\"$\": {}}}",
        "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""
      ),
      (
        "{\"rules\": {\"$x\": {\"a\": {\"$x\": {}}}}}", "'$x' is already bound by a node above."
      ),
    ])
  func refused(text: String, message: String) { #expect(refusal(ofText: text) == message) }

  @Test("booleans and strings are rules")
  func kinds() throws {
    for value in ["true", "\"true\"", "\" true \"", "\"1 == 1\""] {
      #expect(try Bench("{\".read\": \(value)}").read("a"))
    }
    for value in ["false", "\"false\""] { #expect(try !Bench("{\".read\": \(value)}").read("a")) }
  }

  @Test("a $ name is visible in its node and below, not in siblings")
  func scope() {
    #expect(
      refusal(ofText: "{\"rules\": {\"$x\": {\"a\": {\".read\": \"$x == 'a'\"}}}}") == nil)
    #expect(
      refusal(ofText: "{\"rules\": {\"$x\": {}, \"a\": {\".read\": \"$x == 'a'\"}}}")
        == "Unknown variable '$x'.")
    #expect(
      refusal(
        ofText: "{\"rules\": {\"a\": {\"$x\": {}}, \"b\": {\"$x\": {\".read\": \"$x == 'a'\"}}}}")
        == nil)
  }

  @Test("a literal child hides its $ sibling, in either order")
  func hiding() throws {
    for rules in [
      "{\"$k\": {\".read\": true, \"a\": {\".read\": true}}, \"s\": {}}",
      "{\"s\": {}, \"$k\": {\".read\": true, \"a\": {\".read\": true}}}",
    ] {
      let bench = try Bench(rules)
      #expect(try bench.read("x"))
      #expect(try !bench.read("s"))
      #expect(try !bench.read("s/a"))
    }
  }

  @Test("many literal children")
  func manyChildren() throws {
    let names = (0..<200).map { "k\($0)" } + (0..<50).map { "\($0)" } + ["é", "😀", "\u{FFFD}"]
    let children = names.map { "\(quotedJSON($0)): {\".read\": \($0.utf8.count % 2 == 0)}" }
    let bench = try Bench(
      "{\(children.joined(separator: ",")), \"$x\": {\".read\": \"$x == 'z'\"}}")
    for name in names { #expect(try bench.read(name) == (name.utf8.count % 2 == 0)) }
    #expect(try bench.read("z"))
    #expect(try !bench.read("y"))
  }

  @Test("indexes by location")
  func indexes() throws {
    let rules = try Bench(
      """
      {".indexOn": ".value", "d": {".indexOn": ["a", "dim/height"], "$k": {".indexOn": "/k/"},
       "s": {}}}
      """
    ).rules
    #expect(rules.indexes(at: "/") == [".value"])
    #expect(rules.indexes(at: "d") == ["a", "dim/height"])
    #expect(rules.indexes(at: "d/x") == ["k"])
    #expect(rules.indexes(at: "d/s") == [])
    #expect(rules.indexes(at: "d/x/y") == [])
    #expect(rules.indexes(at: "a.b") == [])
  }
}
