import Dendro
import DendroServer
import Testing

/// What one request may show and write.
@Suite("serving: limits of readings and writes")
struct SizeLimitTests {
  private let readTooLarge =
    "Data requested exceeds the maximum size that can be accessed with a single request."
  private let writeTooLarge =
    "Data to write exceeds the maximum size that can be modified with a single request."
  private let tooBig = "{\"s\":\"too_big\",\"d\":\"Data requested exceeds the maximum size that "
  private let window = "orderBy=%22%24key%22&limitToFirst=2"

  /// An object of children that take a hundred bytes each.
  private func object(_ count: Int) -> String {
    let text = String(repeating: "x", count: 90)
    let members = (0..<count).map { "\"child\($0 + 10_000)\":\"\(text)\"" }
    return "{" + members.joined(separator: ",") + "}"
  }

  @Test(
    "a reading that shows more than the limit is refused, however it asks; a part of it, and keys, are shown",
    arguments: [10_000, 2 << 20])
  func reading(limit: Int) async throws {
    try await serving({ $0.readByteLimit = limit }) { served in
      let http = try served.client()
      let count = limit / 100
      #expect(try http("PUT", "/large.json?print=silent", object(count + count / 4)).status == 204)
      #expect(try http("PUT", "/small.json?print=silent", object(count / 4)).status == 204)
      for target in ["/large.json", "/.json", "/large.json?orderBy=%22%24key%22"] {
        let answer = try http("GET", target)
        #expect(answer.status == 400)
        #expect(answer.body.contains(readTooLarge))
      }
      for target in ["/small.json", "/large.json?\(window)", "/large.json?shallow=true"] {
        #expect(try http("GET", target).status == 200)
      }

      for method in ["PUT", "DELETE"] {
        let answer = try http(method, "/large.json", "1", ["if-match": "another"])
        #expect(answer.status == 412)
        #expect(answer.body.contains(readTooLarge))
        let etag = try #require(answer.headers["etag"])
        #expect(try http("PUT", "/large.json", "1", ["if-match": etag]).status == 200)
        #expect(
          try http("PUT", "/large.json?print=silent", object(count + count / 4)).status == 204)
      }

      let events = ["Accept": "text/event-stream"]
      #expect(try http("GET", "/large.json", nil, events).status == 400)
      _ = try served.stream("/large.json?\(window)")
      _ = try served.stream("/small.json")

      let client = try WebSocketClient(served)
      for action in ["q", "g"] {
        let refused = try client(action, "{\"p\":\"/large\",\"h\":\"\"}")
        #expect(refused.count == 1 && refused[0].hasPrefix(tooBig))
        let part = try client(
          action,
          "{\"p\":\"/large\",\"q\":{\"l\":2,\"vf\":\"l\",\"i\":\".key\"},\"t\":1,\"h\":\"\"}")
        #expect(part.last?.hasPrefix("{\"s\":\"ok\"") == true)
        let small = try client(action, "{\"p\":\"/small\",\"h\":\"\"}")
        #expect(small.last?.hasPrefix("{\"s\":\"ok\"") == true)
      }
    }
  }

  @Test("a write is refused that would take longer than its limit, or else the database's")
  func writing() async throws {
    try await serving { served in
      let http = try served.client()
      let long = "[" + String(repeating: "0,", count: 1_000_001) + "0]"
      let owner = ["Authorization": "Bearer owner"]
      let setting = "/.settings/defaultWriteSizeLimit.json"
      #expect(try http("GET", setting, nil, owner).body == "\"large\"")
      for limit in ["huge", "\"huge\"", "1", "{}"] {
        #expect(try http("PUT", setting, limit, owner).status == 400)
      }
      for method in ["PUT", "POST", "PATCH"] {
        let body = method == "PATCH" ? "{\"a\":\(long)}" : long
        let answer = try http(method, "/a.json?writeSizeLimit=tiny", body)
        #expect(answer.status == 400)
        #expect(answer.body.contains(writeTooLarge))
      }
      #expect(try http("PUT", setting, "\"tiny\"", owner).status == 200)
      #expect(try http("PUT", "/a.json", long).status == 400)
      #expect(try http("GET", "/a.json").body == "null")
      #expect(try http("PUT", "/a.json?writeSizeLimit=small&print=silent", long).status == 204)
      // What is removed takes no time.
      #expect(try http("DELETE", "/a.json?writeSizeLimit=tiny").status == 200)
    }
  }
}
