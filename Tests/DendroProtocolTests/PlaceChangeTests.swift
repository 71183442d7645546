import DendroProtocol
import DendroTree
import Testing

@Suite("what a commit changes at a place")
struct PlaceChangeTests {
  /// Applies a write to a tree, and returns the event of a stream at `place`.
  private func event(
    _ before: String, _ method: String, _ target: String, _ body: String, at place: String
  ) throws -> String? {
    var root = try json(before)
    let request = try request(method, target)
    let location = try #require(request.resource.path)
    let write = try draft(request, body, location).resolved(time: 0, against: root)
    let old = root
    let commit = CommitChanges(root.apply(write))
    let placePath = try path(place)
    var node = old.node(at: placePath)
    commit.apply(to: &node, at: placePath)
    #expect(node == root.node(at: placePath))
    guard let change = commit.change(at: placePath) else { return nil }
    var text = StreamEvent.change(change).text(.value)
    let lines = String(decoding: text.rest(), as: UTF8.self)
    #expect(lines.hasSuffix("\n\n"))
    return String(lines.dropLast(2)).replacing("event: ", with: "").replacing("\ndata: ", with: " ")
  }

  @Test(
    "events",
    arguments: [
      (
        "{\"room\":{\"n\":1}}", "PUT", "/room/n.json", "2", "room",
        "put {\"path\":\"/n\",\"data\":2}"
      ),
      (
        "{\"room\":{\"n\":1}}", "PUT", "/room.json", "{\"n\":2,\"m\":3}", "room",
        "put {\"path\":\"/\",\"data\":{\"m\":3,\"n\":2}}"
      ),
      (
        "{\"room\":{\"n\":2}}", "PATCH", "/room.json", "{\"n\":3,\"m/x\":true}", "room",
        "patch {\"path\":\"/\",\"data\":{\"m/x\":true,\"n\":3}}"
      ),
      (
        "{\"room\":{\"n\":2}}", "PATCH", "/room.json", "{\"n\":3,\"m/x\":true}", "/",
        "patch {\"path\":\"/room\",\"data\":{\"m/x\":true,\"n\":3}}"
      ),
      (
        "{\"room\":{\"n\":2}}", "PATCH", "/room.json", "{\"n\":3}", "room",
        "put {\"path\":\"/n\",\"data\":3}"
      ),
      (
        "{\"room\":{\"n\":2}}", "PATCH", "/.json", "{\"room/n\":3,\"other\":1}", "room",
        "put {\"path\":\"/n\",\"data\":3}"
      ),
      (
        "{\"room\":{\"n\":2}}", "DELETE", "/room.json", "", "room",
        "put {\"path\":\"/\",\"data\":null}"
      ),
      (
        "{\"room\":{\"n\":2}}", "DELETE", "/room/n.json", "", "room",
        "put {\"path\":\"/\",\"data\":null}"
      ),
      (
        "{\"room\":{\"n\":2}}", "PUT", "/.json", "{\"room\":{\"k\":1}}", "room",
        "put {\"path\":\"/\",\"data\":{\"k\":1}}"
      ),
      ("{\"room\":{\"n\":2}}", "PUT", "/.json", "{\"room\":{\"n\":2},\"x\":1}", "room", nil),
      ("{\"room\":{\"n\":2}}", "PUT", "/x.json", "1", "room", nil),
      ("{\"room\":{\"n\":2}}", "PUT", "/room/n.json", "2", "room", nil),
      (
        "{\"room\":5}", "PATCH", "/room.json", "{\"a\":1,\"b\":2}", "/",
        "put {\"path\":\"/room\",\"data\":{\"a\":1,\"b\":2}}"
      ),
      (
        "{\"room\":{\"a\":1,\"b\":2},\"x\":1}", "PATCH", "/room.json", "{\"a\":null,\"b\":null}",
        "/",
        "put {\"path\":\"/room\",\"data\":null}"
      ),
      (
        "{\"room\":{\"a\":1}}", "PATCH", "/room.json", "{\"a/.priority\":1,\"b\":2}", "/",
        "patch {\"path\":\"/room\",\"data\":{\"a\":1,\"b\":2}}"
      ),
      (
        "{\"room\":{\"a\":{\"c\":1}}}", "PATCH", "/room.json", "{\"a/c\":2,\"a/.priority\":1}",
        "room/a/c",
        "put {\"path\":\"/\",\"data\":2}"
      ),
    ] as [(String, String, String, String, String, String?)])
  func events(
    before: String, method: String, target: String, body: String, place: String, expected: String?
  ) throws {
    #expect(try event(before, method, target, body, at: place) == expected)
  }

  @Test("other events")
  func otherEvents() {
    func text(_ event: StreamEvent) -> String {
      var text = event.text(.value)
      return String(decoding: text.rest(), as: UTF8.self)
    }
    #expect(text(.keepAlive) == "event: keep-alive\ndata: null\n\n")
    #expect(text(.cancel("Permission denied")) == "event: cancel\ndata: \"Permission denied\"\n\n")
    #expect(
      text(.authRevoked) == "event: auth_revoked\ndata: \"credential is no longer valid\"\n\n")
    var numbered = StreamEvent.change(.put(.root, .empty)).text(.value, id: 7)
    #expect(
      String(decoding: numbered.rest(), as: UTF8.self)
        == "id: 7\nevent: put\ndata: {\"path\":\"/\",\"data\":null}\n\n")
  }
}
