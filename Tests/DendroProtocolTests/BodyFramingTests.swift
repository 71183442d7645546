import DendroProtocol
import Testing

@Suite("Where a body ends")
struct BodyFramingTests {
  /// - Returns: the framing, or the status of the refusal.
  private static func framing(
    _ fields: [(String, String)], _ version: String = "HTTP/1.1"
  ) -> Result<BodyFraming, RESTError> {
    Result { () throws(RESTError) in
      try BodyFraming(version: version, headers: HTTPHeaders(fields))
    }
  }

  private static func length(_ text: String) -> (String, String) { ("content-LENGTH", text) }
  private static func coding(_ text: String) -> (String, String) { ("Transfer-encoding", text) }

  @Test("heads that have one meaning")
  func good() {
    #expect(Self.framing([]) == .success(.none))
    #expect(Self.framing([("Host", "x")], "HTTP/1.0") == .success(.none))
    #expect(Self.framing([Self.length("0")]) == .success(.none))
    #expect(Self.framing([Self.length("007")]) == .success(.length(7)))
    #expect(Self.framing([Self.length("12")], "HTTP/1.0") == .success(.length(12)))
    #expect(Self.framing([Self.length("\(Int.max)")]) == .success(.length(.max)))
    #expect(Self.framing([Self.coding("chunked")]) == .success(.chunked))
    #expect(Self.framing([Self.coding("CHUNKED")]) == .success(.chunked))
  }

  @Test(
    "heads that have none, or several",
    arguments: [
      ([length("1"), length("1")], 400), ([length("1"), length("2")], 400),
      ([coding("chunked"), coding("chunked")], 400), ([coding("chunked"), length("0")], 400),
      ([length("")], 400), ([length("+1")], 400), ([length("-1")], 400), ([length("1,1")], 400),
      ([length("1 ")], 400), ([length("0x1")], 400), ([length("١")], 400),
      ([length("9223372036854775808")], 413), ([coding("")], 501), ([coding("identity")], 501),
      ([coding("gzip, chunked")], 501), ([coding("chunked, chunked")], 501),
      ([coding(" chunked")], 501), ([coding("chunked;a")], 501),
    ] as [([(String, String)], Int)])
  func bad(fields: [(String, String)], status: Int) {
    guard case .failure(let error) = Self.framing(fields) else {
      Issue.record("\(fields) was taken")
      return
    }
    #expect(error.status == status)
  }

  @Test("an older version has no chunks")
  func old() {
    guard case .failure(let error) = Self.framing([Self.coding("chunked")], "HTTP/1.0") else {
      Issue.record("chunks were taken")
      return
    }
    #expect(error.status == 400)
  }
}
