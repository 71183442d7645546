import DendroProtocol
import DendroTestSupport
import DendroTree
import Testing

/// Whatever comes in is answered or refused; nothing traps.
@Suite("REST, arbitrary input")
struct ProtocolFuzzTests {
  private static let words = [
    "/", ".json", "a", "b/c", "%2F", "%", "%zz", "%C3%A9", "%FF", ".priority", ".settings/rules",
    "?", "&", "=",
    "orderBy", "\"$key\"", "\"$value\"", "\"s\"", "startAt", "endAt", "equalTo", "limitToFirst",
    "limitToLast",
    "1", "-1", "\"x\"", ",", "\"[MIN_NAME]\"", "shallow", "true", "print", "silent", "pretty",
    "callback",
    "timeout", "3s", "ns", "app", "auth", "x.y.", "format", "export", "download", "\u{0}", "é", "😀",
    " ", "+",
  ]
  private static let tokens = [
    "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a/b\"", "\".sv\"", "\".value\"",
    "\".priority\"",
    "\"timestamp\"", "\"increment\"", "1", "-0.5e3", "null", "true", "\\", "\\u00", "\u{1}", "é",
    " ", "\n",
    "{\".sv\":\"timestamp\"}", "{\".sv\":{\"increment\":1}}",
  ]

  private func text(_ words: [String], _ generator: inout SeededGenerator) -> String {
    (0..<generator.below(14)).map { _ in words[generator.below(words.count)] }.joined()
  }

  @Test("requests and bodies", arguments: 0..<8)
  func requests(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let data = try json("{\"a\":{\"s\":1},\"b\":[1,2],\"c\":\"x\"}")
    var taken = 0
    for _ in 0..<4_000 {
      let method = HTTPMethod.allCases[generator.below(HTTPMethod.allCases.count)].rawValue
      let items = generator.oneIn(2) ? "?" + text(Self.words, &generator) : ""
      let target = "/" + text(Self.words, &generator) + ".json" + items
      let headers = [
        ("if-match", "E"), ("x-firebase-etag", "true"), ("accept", "text/event-stream"),
        ("host", text(Self.words, &generator)), ("authorization", "Bearer x"),
      ].filter { _ in generator.oneIn(4) }
      do {
        let request = try request(method, target, headers)
        _ = try CredentialPolicy.trusting.identity(of: request.credentials)
        taken += 1
        if request.method.isWrite, let path = request.resource.path {
          let draft = try draft(request, text(Self.tokens, &generator), path)
          try draft.write.validate()
          var root = data
          _ = root.apply(draft.resolved(time: 1, against: root))
          try root.checkInvariants()
        } else {
          _ = RESTAnswer(reading: data, request).text
        }
      } catch is RESTError {
      } catch is ValidationError {}
    }
    #expect(taken > 100, "seed \(seed)")
  }

  @Test("bodies of bytes at random", arguments: 0..<4)
  func bytes(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let put = try request("PUT", "/a.json")
    let patch = try request("PATCH", "/a.json")
    for _ in 0..<4_000 {
      let bytes = (0..<generator.below(40)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
      bytes.withUnsafeBytes { bytes in
        _ = try? RESTBody.draft(put, bytes, at: .root)
        _ = try? RESTBody.draft(patch, bytes, at: .root)
        _ = RESTBody.compact(bytes)
      }
      _ = IDToken(String(decoding: bytes, as: UTF8.self))?.userID
      _ = try? RequestTarget(String(decoding: bytes, as: UTF8.self))
    }
  }
}
