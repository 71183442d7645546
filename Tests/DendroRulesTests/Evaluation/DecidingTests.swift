import DendroRules
import Testing

/// Which rules decide a request.
@Suite("Deciding")
struct DecidingTests {
  @Test("a rule above grants what is below, and rules below the location do not matter")
  func cascade() throws {
    let above = try Bench("{\"a\": {\".read\": true, \"b\": {\".read\": false}}}")
    #expect(try above.read("a"))
    #expect(try above.read("a/b"))
    #expect(try above.read("a/b/c"))
    #expect(try !above.read(""))
    let below = try Bench("{\"a\": {\"b\": {\".read\": true}}}")
    #expect(try !below.read("a"))
    #expect(try below.read("a/b/c/d"))
  }

  @Test("what is granted above cannot be taken back below, for writes as well")
  func cascadeOfWrites() throws {
    let above = try Bench("{\"a\": {\".write\": true, \"b\": {\".write\": false}}}")
    #expect(try above.set("a/b", "1"))
    #expect(try above.set("a/b/c", "1"))
    #expect(try above.update("a", ["b", "x"], "{\"b\":1,\"x\":1}"))
    #expect(try !above.set("", "1"))
    #expect(try !above.update("", ["a", "c"], "{\"a\":1,\"c\":1}"))
  }

  @Test(
    "nothing true on the way is a refusal",
    arguments: [
      "{}", "{\"a\": {}}", "{\"a\": {\".validate\": true}}", "{\"a\": {\".read\": true}}",
      "{\"a\": {\"b\": {\".write\": true}}}", "{\".write\": false}",
    ])
  func nothing(rules: String) throws { #expect(try !Bench(rules).set("a", "1")) }

  @Test("a rule that fails counts as not true, and the others still count")
  func failing() throws {
    let bench = try Bench(
      """
      {".write": "auth.uid.contains('x')", ".read": "data.val() > 1",
       "a": {".write": "1 < now", ".read": "1 < now"}}
      """)
    #expect(try bench.set("a", "1"))
    #expect(try !bench.set("b", "1"))
    #expect(try bench.read("a"))
    #expect(try !bench.read("b"))
  }

  // MARK: Validating

  private static let rows = """
    {"r": {"$x": {".write": true, ".validate": "newData.hasChildren(['a', 'b'])",
      "a": {".validate": "newData.isString()"},
      "n": {".validate": "newData.val() == data.val() + 1"}}}}
    """

  @Test(
    "which .validate apply",
    arguments: [
      ("{\"a\":\"s\",\"b\":1}", "r/1", "null", true), ("{\"a\":\"s\",\"b\":1}", "r/1", "{}", true),
      ("{\"a\":\"s\",\"b\":1}", "r/1/b", "null", false),
      ("{\"a\":\"s\",\"b\":1}", "r/1", "{\"a\":\"s\"}", false),
      ("{\"a\":\"s\",\"b\":1,\"n\":4}", "r/1/a", "\"t\"", true),
      ("{\"a\":\"s\",\"b\":1,\"n\":4}", "r/1/a", "1", false),
      ("{\"a\":\"s\",\"b\":1,\"n\":4}", "r/1", "{\"a\":\"t\",\"b\":1,\"n\":4}", false),
      ("{\"a\":\"s\",\"b\":1,\"n\":4}", "r/1", "{\"a\":\"t\",\"b\":1,\"n\":5}", true),
      ("{\"a\":\"s\",\"b\":1}", "r/1", "{\"a\":1,\"b\":1}", false),
      ("{\"a\":\"s\",\"b\":1}", "r/1", "{\"a\":\"t\",\"b\":1,\"c\":{\"d\":1}}", true),
    ])
  func validating(stored: String, path: String, value: String, isAllowed: Bool) throws {
    let bench = try Bench(Self.rows, "{\"r\":{\"1\":\(stored)}}")
    #expect(try bench.set(path, value) == isAllowed)
  }

  @Test("the entries of an update are judged one by one against the same trees")
  func updating() throws {
    let bench = try Bench(
      Self.rows, "{\"r\":{\"1\":{\"a\":\"s\",\"b\":1,\"n\":4},\"2\":{\"a\":\"s\"}}}")
    #expect(try bench.update("r/1", ["n"], "{\"n\":5}"))
    #expect(try !bench.update("r/1", ["n"], "{\"n\":6}"))
    #expect(try !bench.update("r", ["1/a", "2/a"], "{\"1/a\":\"x\",\"2/a\":\"y\"}"))
    #expect(
      try bench.update("r", ["1/a", "2/a", "2/b"], "{\"1/a\":\"x\",\"2/a\":\"y\",\"2/b\":1}"))
    #expect(try !bench.update("", ["r/1/a", "q"], "{\"r/1/a\":\"x\",\"q\":1}"))
    #expect(try !bench.update("r/1", ["b"], "{\"b\":null}"))
    #expect(try bench.update("r/1", ["a", "b", "n"], "{\"a\":null,\"b\":null,\"n\":null}"))
  }

  @Test("an update without entries is allowed: it changes nothing")
  func emptyUpdate() throws { #expect(try Bench("{\".write\": false}").update("", [], "{}")) }

  @Test("siblings of the location are not looked at, its ancestors are")
  func siblings() throws {
    let bench = try Bench(
      """
      {".write": true, "a": {"b": {".validate": "root.child('a/c').val() == 1"},
       "c": {".validate": "newData.parent().child('b').val() == 'x'"}}}
      """, "{\"a\":{\"b\":\"x\",\"c\":1}}")
    #expect(try bench.set("a/b", "\"y\""))
    #expect(try !bench.set("a", "{\"b\":\"y\",\"c\":1}"))
    let above = try Bench(
      "{\".write\": true, \"a\": {\".validate\": \"newData.child('b').val() == 1\"}}",
      "{\"a\":{\"b\":1}}")
    #expect(try above.set("a/c/d", "1"))
    #expect(try !above.set("a/b", "2"))
    #expect(try above.set("a", "null"))
  }

  @Test("$ rules validate every other child")
  func wildcards() throws {
    let bench = try Bench(
      """
      {".write": true, "a": {"s": {".validate": "newData.isString()"},
       "$k": {".validate": "newData.isNumber()", "$l": {".validate": "$l.length == $k.length"}}}}
      """)
    #expect(try bench.set("a", "{\"s\":\"x\",\"t\":1,\"u\":2}"))
    #expect(try !bench.set("a", "{\"s\":\"x\",\"t\":1,\"u\":\"2\"}"))
    #expect(try !bench.set("a", "{\"s\":1}"))
    #expect(try bench.set("b", "{\"t\":\"x\"}"))
    let names = try Bench(
      "{\".write\": true, \"$k\": {\"$l\": {\".validate\": \"$l.length == $k.length\"}}}")
    #expect(try names.set("", "{\"ab\":{\"cd\":1,\"ef\":{\"long\":1}},\"x\":{\"y\":1},\"z\":1}"))
    #expect(try !names.set("", "{\"ab\":{\"cd\":1,\"e\":2}}"))
  }

  @Test("an array is children 0, 1, …")
  func arrays() throws {
    let bench = try Bench(
      "{\".write\": true, \"a\": {\"$i\": {\".validate\": \"$i == '0' || newData.val() == $i\"}}}")
    #expect(try bench.set("a", "[5, \"1\", \"2\"]"))
    #expect(try !bench.set("a", "[5, \"1\", \"3\"]"))
  }

  // MARK: Other writes

  @Test("a priority is a write of its location")
  func priorities() throws {
    let bench = try Bench(
      """
      {"w": {".write": "auth == null", ".validate": "newData.getPriority() == 7 && newData.val() == 'w'"},
       "v": {".validate": true}}
      """, "{\"w\":\"w\",\"v\":1}")
    #expect(try bench.setPriority("w", "7"))
    #expect(try !bench.setPriority("w", "8"))
    #expect(try !bench.setPriority("v", "7"))
    #expect(try bench.update("", ["w/.priority"], "{\"w/.priority\":7}"))
    #expect(try !bench.update("", ["w/.priority"], "{\"w/.priority\":null}"))
    #expect(try bench.set("w", "{\".value\":\"w\",\".priority\":7}"))
    #expect(try !bench.set("w", "{\".value\":\"w\",\".priority\":\"7\"}"))
  }

  @Test("root is the stored tree, also while writing")
  func root() throws {
    let bench = try Bench(
      "{\".write\": \"!root.child('a').exists() && newData.child('a').exists()\"}")
    #expect(try bench.set("", "{\"a\":1}"))
    let full = try Bench(
      "{\"a\": {\".write\": \"!root.child('a').exists()\"}}", "{\"a\":1}")
    #expect(try !full.set("a", "null"))
  }

  @Test("paths that no location has")
  func impossible() throws {
    #expect(throws: RuleRequestError.self) { try RuleRequest(setting: "a.b", now: 0) }
    #expect(throws: RuleRequestError.self) {
      try RuleRequest(updating: "a", children: ["b#"], now: 0)
    }
    let error = #expect(throws: RuleRequestError.self) {
      try RuleRequest(reading: "a/b[c]", now: 0)
    }
    #expect(error?.message.contains("b[c]") == true)
  }

  @Test("locations beyond the depth are refused")
  func depth() throws {
    let path = String(repeating: "a/", count: 101)
    #expect(try !Bench("{\".read\": true}").read(path))
    #expect(try Bench("{\".read\": true}").read(String(path.dropLast(2))))
  }

  @Test("rules judge data that is no tree of the database's own")
  func foreign() throws {
    let rules = try Rules(
      """
      {"rules": {".write": "data.child('a/b').val() == 1", ".validate": "newData.hasChildren()",
       "$k": {".validate": "newData.isNumber() || newData.getPriority() == 'p'"}}}
      """)
    let old = Dictionary("", ["a": Dictionary("", ["b": Dictionary(1)])])
    let request = try RuleRequest(setting: "", now: 0)
    let good = Dictionary("", ["x": Dictionary(2), "y": Dictionary("s", priority: "p")])
    let bad = Dictionary("", ["x": Dictionary("s")])
    let details: RuleDetails = .observations
    let verdict = rules.decide(request, data: old, newData: good, details: details)
    #expect(verdict.isAllowed)
    #expect(verdict.observations?.hold(data: old, newData: good) == true)
    #expect(verdict.observations?.hold(data: good, newData: good) == false)
    #expect(!rules.decide(request, data: old, newData: bad).isAllowed)
    // Without new data the write leaves nothing, which is not validated.
    #expect(rules.decide(request, data: old).isAllowed)
    #expect(!rules.decide(request, data: good, newData: good).isAllowed)
  }

  /// Data of an app's own.
  private struct Dictionary: RuleData {
    let scalar: RuleScalar?
    let priority: RuleScalar?
    let children: [String: Dictionary]

    init(_ scalar: RuleScalar, _ children: [String: Dictionary] = [:], priority: RuleScalar? = nil)
    {
      self.scalar = children.isEmpty ? scalar : nil
      self.children = children
      self.priority = priority
    }

    var exists: Bool { scalar != "" }
    func child(_ key: String) -> Dictionary { children[key] ?? Dictionary("") }
    func forEachChild(_ body: (String, Dictionary) -> Bool) {
      for (key, child) in children where !body(key, child) { return }
    }
  }
}
