import DendroProtocol
import DendroTree
import Testing

@Suite("REST, bodies")
struct RESTBodyTests {
  private static let badKey =
    "Key value can't be empty or contain $ # [ ] / or ."
  private static let noObject =
    "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?"
  private static let noJSON = "Invalid data; couldn't parse JSON object, array, or value."

  @Test(
    "refused",
    arguments: [
      ("PUT", "", "Error: No data supplied."), ("POST", " \n", "Error: No data supplied."),
      ("PATCH", "", "Error: No data supplied."),
      (
        "PUT", "{a:1}", noJSON + " Perhaps you're using invalid characters in your key names."
      ),
      (
        "PUT", "{\"a\":1", noJSON + " Perhaps you're using invalid characters in your key names."
      ),
      ("PUT", "hello", noJSON), ("PUT", "1 2", noJSON), ("PUT", "\"a", noJSON),
      ("POST", "[1,]", noJSON),
      ("PUT", "{\"a.b\":1}", "Invalid data; couldn't parse key beginning at 1:2. " + badKey),
      ("PUT", "{\"\":1}", "Invalid data; couldn't parse key beginning at 1:2. " + badKey),
      (
        "PUT", "{\n \"a\":{\"$b\":1}}",
        "Invalid data; couldn't parse key beginning at 2:7. " + badKey
      ),
      ("PATCH", "{\"a#b\":1}", "Invalid data; couldn't parse key beginning at 1:2. " + badKey),
      ("PATCH", "{\"a\":2,\"\":1}", "Invalid data; couldn't parse key beginning at 1:8. " + badKey),
      ("PATCH", "[1]", noObject), ("PATCH", "5", noObject), ("PATCH", "null", noObject),
      ("PATCH", "{a:1}", noObject), ("PATCH", "{\"a\":}", noObject),
    ])
  func refused(method: String, body: String, text: String) {
    #expect(refusal(method, "/m.json", body: body) == .badRequest(text))
  }

  @Test(
    "refused, whatever the text",
    arguments: [
      "{\".sv\":\"now\"}", "{\".sv\":{\"increment\":\"1\"}}", "{\".sv\":{\"decrement\":1}}",
      "{\".sv\":null}", "{\".sv\":{}}", "{\".sv\":{\"increment\":1,\"x\":2}}",
      "{\".sv\":\"timestamp\",\"a\":1}", "{\"a\":1,\".sv\":\"timestamp\"}",
      "{\".value\":1,\".sv\":\"timestamp\"}", "{\".value\":{\"a\":1}}",
      "{\".value\":{}}", "{\".value\":{\".sv\":\"now\"}}",
      "{\".value\":{\".sv\":\"timestamp\",\"a\":1}}",
      "{\".value\":{\".value\":{\".sv\":\"timestamp\"}}}",
      "{\".value\":{\".sv\":\"timestamp\"},\"a\":1}",
      "{\"a\":1,\".priority\":true}",
      "{\".priority\":{\"increment\":1},\".value\":1}",
      String(repeating: "{\"a\":", count: 33) + "1" + String(repeating: "}", count: 33),
      String(repeating: "[", count: 100_000),
    ])
  func refusedData(body: String) {
    #expect(refusal("PUT", "/m.json", body: body)?.status == 400)
  }

  /// What a write makes of `before` at the path `m`.
  private func written(
    _ method: String, _ body: String, _ before: String = "null", priority: Bool = false
  ) throws -> String {
    var root = Node.empty
    let place = try path("m")
    root.graft(try json(before), at: place)
    let request = try request(method, priority ? "/m/.priority.json" : "/m.json")
    let draft = try draft(request, body, place)
    try draft.write.validate()
    _ = root.apply(draft.resolved(time: 1_700_000_000_123, against: root))
    return JSONWriter.string(root.node(at: place), style: JSONStyle(.export))
  }

  @Test(
    "what is written",
    arguments: [
      ("PUT", "{\"x\":1}", "{\"y\":2}", "{\"x\":1}"),
      ("PUT", "[\"x\",null,\"z\"]", "null", "[\"x\",null,\"z\"]"),
      ("PUT", "null", "5", "null"), ("PUT", "{}", "5", "null"), ("PUT", "[]", "5", "null"),
      ("PUT", "{\"a\":{\"b\":null}}", "5", "null"),
      ("PUT", "{\".value\":1,\".priority\":2}", "null", "{\".value\":1,\".priority\":2}"),
      ("PUT", "{\"a\":1,\".priority\":\"p\"}", "null", "{\"a\":1,\".priority\":\"p\"}"),
      ("PUT", "{\".sv\":\"timestamp\"}", "null", "1700000000123"),
      (
        "PUT", "{\"t\":{\".sv\":\"timestamp\"},\"u\":{\".sv\":\"timestamp\"}}", "null",
        "{\"t\":1700000000123,\"u\":1700000000123}"
      ),
      ("PUT", "{\".sv\":{\"increment\":2}}", "40", "42"),
      ("PUT", "{\".sv\":{\"increment\":1.5}}", "\"x\"", "1.5"),
      ("PUT", "{\"n\":{\".sv\":{\"increment\":5}}}", "{\"n\":1,\"m\":2}", "{\"n\":6}"),
      ("PUT", "{\".sv\":{\"increment\":1}}", "9223372036854775807", "9223372036854775808"),
      (
        "PUT", "{\".sv\":\"timestamp\",\".priority\":3}", "null",
        "{\".value\":1700000000123,\".priority\":3}"
      ),
      (
        "PUT", "{\".value\":1,\".priority\":{\".sv\":\"timestamp\"}}", "null",
        "{\".value\":1,\".priority\":1700000000123}"
      ),
      (
        "PUT", "{\".value\":{\".sv\":\"timestamp\"},\".priority\":{\".sv\":\"timestamp\"}}", "null",
        "{\".value\":1700000000123,\".priority\":1700000000123}"
      ),
      (
        "PUT", "{\"n\":{\".priority\":3,\".value\":{\".sv\":{\"increment\":2}}}}", "{\"n\":40}",
        "{\"n\":{\".value\":42,\".priority\":3}}"
      ),
      ("PUT", "{\".value\":{\".sv\":\"timestamp\"}}", "null", "1700000000123"),
      ("PUT", "{\"a\":{\".sv\":\"timestamp\"},\"a\":7}", "null", "{\"a\":7}"),
      ("PUT", "{\"a\":7,\"a\":{\".sv\":\"timestamp\"}}", "null", "{\"a\":1700000000123}"),
      ("PATCH", "{\"a/b\":1,\"c\":2}", "{\"d\":3}", "{\"a\":{\"b\":1},\"c\":2,\"d\":3}"),
      ("PATCH", "{\"a/b\":null}", "{\"a\":{\"b\":1},\"c\":2}", "{\"c\":2}"),
      ("PATCH", "{}", "{\"d\":3}", "{\"d\":3}"),
      (
        "PATCH", "{\"n\":{\".sv\":{\"increment\":1}},\"t\":{\"u\":{\".sv\":\"timestamp\"}}}",
        "{\"n\":1}",
        "{\"n\":2,\"t\":{\"u\":1700000000123}}"
      ),
      ("PATCH", "{\"n/.priority\":4}", "{\"n\":1}", "{\"n\":{\".value\":1,\".priority\":4}}"),
      (
        "PATCH", "{\"n/.priority\":{\".sv\":\"timestamp\"}}", "{\"n\":1}",
        "{\"n\":{\".value\":1,\".priority\":1700000000123}}"
      ),
      ("POST", "\"\"", "null", "\"\""),
      ("DELETE", "", "{\"a\":1}", "null"),
    ] as [(String, String, String, String)])
  func writes(method: String, body: String, before: String, after: String) throws {
    #expect(try written(method, body, before) == after)
  }

  @Test("the priority as a value")
  func priority() throws {
    #expect(
      try written("PUT", "2", "1", priority: true) == "{\".value\":1,\".priority\":2}")
    #expect(try written("PUT", "null", "{\".value\":1,\".priority\":2}", priority: true) == "1")
    #expect(try written("DELETE", "", "{\".value\":1,\".priority\":2}", priority: true) == "1")
    #expect(refusal("PUT", "/m/.priority.json", body: "true")?.status == 400)
    #expect(refusal("PUT", "/m/.priority.json", body: "{\"a\":1}")?.status == 400)
    #expect(refusal("PUT", "/m/.priority.json", body: "1 2")?.status == 400)
  }

  @Test("no key of an update may be a prefix of another")
  func conflicts() throws {
    let draft = try draft(
      try request("PATCH", "/m.json"), "{\"a\":1,\"a/b\":2}", try path("m"))
    #expect(throws: ValidationError.self) { try draft.write.validate() }
  }

  @Test("an update is echoed without white space")
  func compact() {
    let text = "{ \"a b\" : [ 1 , \"\\\" \\\\\" ] ,\n\t\"c\":null }"
    let compact = Array(text.utf8).withUnsafeBytes { RESTBody.compact($0) }
    #expect(String(decoding: compact, as: UTF8.self) == "{\"a b\":[1,\"\\\" \\\\\"],\"c\":null}")
  }
}
