import DendroProtocol
import DendroTree
import Testing

@Suite("REST, queries")
struct RESTQueryTests {
  private static let scores = """
    {"a":{"s":3},"b":{"s":1},"c":{"s":2},"d":{"s":"x"},"e":{"t":1},"f":{"s":2}}
    """

  @Test(
    "what is shown",
    arguments: [
      ("orderBy=%22s%22", "abcdef"), ("orderBy=\"s\"&limitToFirst=2", "be"),
      ("orderBy=\"s\"&limitToLast=2", "ad"), ("orderBy=\"s\"&startAt=2", "acdf"),
      ("orderBy=\"s\"&startAfter=2", "ad"), ("orderBy=\"s\"&endAt=2", "bcef"),
      ("orderBy=\"s\"&endBefore=2", "be"), ("orderBy=\"s\"&equalTo=2", "cf"),
      ("orderBy=\"s\"&equalTo=2,\"f\"", "f"), ("orderBy=\"s\"&startAt=2,\"f\"", "adf"),
      ("orderBy=\"s\"&startAfter=2,\"c\"", "adf"), ("orderBy=\"s\"&endAt=2,\"c\"", "bce"),
      ("orderBy=\"s\"&startAfter=2,\"[MAX_NAME]\"", "ad"),
      ("orderBy=\"s\"&endBefore=2,\"[MIN_NAME]\"", "be"),
      ("orderBy=\"s\"&startAt=2,\"[MIN_NAME]\"", "acdf"),
      ("orderBy=\"s\"&endAt=2,\"[MAX_NAME]\"", "bcef"), ("orderBy=\"s\"&equalTo=null", "e"),
      ("orderBy=\"s\"&startAt=\"x\"", "d"), ("orderBy=\"$key\"&startAt=\"e\"", "ef"),
      ("orderBy=\"$key\"&startAfter=\"e\"", "f"), ("orderBy=\"$key\"&endBefore=\"b\"", "a"),
      ("orderBy=\"$key\"&equalTo=\"c\"", "c"),
      ("orderBy=\"$key\"&startAt=\"[MIN_NAME]\"", "abcdef"),
      ("orderBy=\"$key\"&endAt=\"[MAX_NAME]\"", "abcdef"),
      ("orderBy=\"$key\"&startAt=\"[MAX_NAME]\"", ""),
      ("orderBy=\"$key\"&endAt=\"[MIN_NAME]\"", ""), ("orderBy=\"$priority\"&limitToLast=2", "ef"),
      ("orderBy=\"$value\"&limitToFirst=1", "a"),
      ("orderBy=\"$key\"&limitToLast=999999999999", "abcdef"),
      ("shallow=true&limitToFirst=2", "ab"), ("shallow=true&startAfter=\"d\"&limitToFirst=5", "ef"),
      ("shallow=true&timeout=3s&limitToLast=1", "f"),
    ])
  func shown(items: String, keys: String) throws {
    let answer = try answer(Self.scores, items)
    let node = try json(answer.text)
    #expect(node.children.map { $0.key.string }.joined() == keys)
    #expect(answer.status == 200)
  }

  @Test(
    "errors, word for word",
    arguments: [
      ("limitToFirst=1", "orderBy must be defined when other query parameters are defined"),
      ("startAt=1", "orderBy must be defined when other query parameters are defined"),
      ("orderBy=s", "orderBy must be a valid JSON encoded path"),
      ("orderBy=1", "orderBy must be a valid JSON encoded path"),
      ("orderBy=", "orderBy must be a valid JSON encoded path"),
      ("orderBy=\"\"", "orderBy must be a valid JSON encoded path"),
      ("orderBy=\"a.b\"", "orderBy must be a valid JSON encoded path"),
      ("orderBy=[\"s\"]", "orderBy must be a valid JSON encoded path"),
      ("orderBy=\"s\"&startAt=x", "Constraint index field must be a JSON primitive"),
      ("orderBy=\"s\"&startAt={}", "Constraint index field must be a JSON primitive"),
      ("orderBy=\"s\"&equalTo=[1]", "Constraint index field must be a JSON primitive"),
      ("orderBy=\"s\"&endAt=", "Constraint index field must be a JSON primitive"),
      ("orderBy=\"s\"&endAt=1,2", "Constraint index field must be a JSON primitive"),
      ("orderBy=\"s\"&endAt=1,", "Constraint index field must be a JSON primitive"),
      (
        "orderBy=\"s\"&limitToFirst=1&limitToLast=1",
        "Only one of limitToFirst and limitToLast may be specified"
      ),
      (
        "orderBy=\"s\"&equalTo=1&startAt=1",
        "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
      ),
      (
        "orderBy=\"s\"&endBefore=1&equalTo=1",
        "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
      ),
      ("orderBy=\"s\"&limitToFirst=x", "limitToFirst must be an integer"),
      ("orderBy=\"s\"&limitToFirst=1.5", "limitToFirst must be an integer"),
      ("orderBy=\"s\"&limitToLast=", "limitToLast must be an integer"),
      ("orderBy=\"$key\"&limitToFirst=0", "limitToFirst must be positive"),
      ("orderBy=\"$key\"&limitToLast=-1", "limitToLast must be positive"),
      ("orderBy=\"$key\"&startAt=1", "Provided key index type is invalid, must be string"),
      ("orderBy=\"$key\"&equalTo=null", "Provided key index type is invalid, must be string"),
    ])
  func errors(items: String, text: String) {
    #expect(refusal("GET", "/m.json?" + items) == .badRequest(text))
  }

  @Test("a window without children is an object, and a leaf shows nothing")
  func empty() throws {
    #expect(try answer(Self.scores, "orderBy=\"s\"&equalTo=99").text == "{}")
    #expect(try answer("5", "orderBy=\"$key\"&limitToFirst=1").text == "null")
    #expect(try answer("null", "orderBy=\"$key\"&limitToFirst=1").text == "null")
  }
}
