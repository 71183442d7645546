import Dendro
import DendroServer
import Testing

/// Bodies that take room from others: whoever may do nothing gets none, and nobody gets all of it, or has it for ever.
@Suite("serving: bodies of strangers")
struct BodyRefusalTests {
  /// A request whose body, of which only a part is sent, is as long as one may be.
  private func half(
    _ client: HTTPClient, _ fields: String = "", _ target: String = "/a.json", count: Int = 0
  ) throws {
    try client.send(
      "PUT \(target) HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\(fields)\r\n"
        + String(repeating: " ", count: count))
  }

  @Test("on a locked server nobody has a body read")
  func locked() async throws {
    try await serving({
      $0.authorizer = LockedAuthorizer()
      $0.secret = "the secret"
    }) { served in
      for fields in ["", "Authorization: Bearer the secret\r\n"] {
        let client = try served.client()
        try half(client, fields)
        let answer = try client.answer()
        #expect(answer.status == 401 && answer.body.contains("Permission denied"))
        let chunked = try served.client()
        try chunked.send(
          "PUT /a.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\(fields)\r\n")
        #expect(try chunked.answer().status == 401)
      }
    }
  }

  @Test("who is no administrator, or has a credential that is none, has no body read")
  func administrators() async throws {
    try await serving({ $0.secret = "the secret" }) { served in
      for (fields, target, text) in [
        ("", "/a.json", "Permission denied"),
        ("", "/.settings/rules.json", "Permission denied"),
        ("Authorization: Bearer another\r\n", "/a.json", "Could not parse auth token."),
        ("", "/a.json?auth=another", "Could not parse auth token."),
        ("Expect: 100-continue\r\n", "/a.json", "Permission denied"),
      ] {
        let client = try served.client()
        try half(client, fields, target)
        let answer = try client.answer()
        #expect(answer.status == 401 && answer.body.contains(text), "\(target): \(answer)")
      }
      let client = try served.client()
      let long = "\"" + String(repeating: "x", count: 100_000) + "\""
      #expect(
        try client("PUT", "/a.json?print=silent&auth=the%20secret", long).status == 204)
    }
  }

  @Test("where users may do everything, nobody else has a body read")
  func users() async throws {
    try await serving({
      $0.authorizer = UsersAuthorizer()
      $0.tokens = TokenOptions()
      $0.tokens?.secret = String(repeating: "s", count: 32)
    }) { served in
      for (target, text) in [
        ("/a.json", "Permission denied"),
        ("/a.json?auth=e30.e30.e30", "Could not parse auth token."),
      ] {
        let client = try served.client()
        try half(client, "", target)
        let answer = try client.answer()
        #expect(answer.status == 401 && answer.body.contains(text), "\(target): \(answer)")
      }
    }
  }

  @Test("a client that sends all of its body before it reads learns why it is refused")
  func lateReader() async throws {
    try await serving({ $0.secret = "the secret" }) { served in
      let long = "\"" + String(repeating: "x", count: 8_000_000) + "\""
      for _ in 0..<3 {
        let client = try served.client()
        try client.send(HTTPClient.request("PUT", "/a.json?auth=wrong", long))
        #expect(try client.answer().status == 401)
        client.shutDownWriting()
        #expect(client.readToEnd() == "")
      }
    }
  }

  @Test("bodies of one address leave room for those of others")
  func share() async throws {
    try await serving({ $0.bodiesByteLimit = 400_000 }) { served in
      let large = "\"" + String(repeating: "x", count: 150_000) + "\""
      var slow: HTTPClient?
      var refused: HTTPClient.Answer?
      // The server may not have read it yet, or refuse the slow one of the two.
      var roundCount = 0
      while refused?.status != 503 {
        if slow?.hasInput ?? true {
          slow = try served.client()
          try half(#require(slow), count: 150_000)
        }
        // More and more time to read it. Other tests go on meanwhile.
        roundCount += 1
        try await Task.sleep(for: .milliseconds(roundCount))
        refused = try served.client()("PUT", "/a.json?print=silent", large)
      }
      #expect(refused?.status == 503)
      #expect(refused?.body.contains("200000 bytes of requests from this address") == true)
      let other = try HTTPClient(port: served.server.port, from: "127.0.0.2")
      #expect(try other("PUT", "/b.json?print=silent", large).status == 204)
      #expect(try served.client()("PUT", "/c.json", "1").status == 200)
    }
  }

  @Test("a body that comes too slowly is given up, and its room is free again")
  func slow() async throws {
    try await serving({
      $0.bodyRateInterval = .seconds(2)
      $0.bodiesByteLimit = 200_000
    }) { served in
      let large = "\"" + String(repeating: "x", count: 90_000) + "\""
      let slow = try (0..<4).map { _ in
        let client = try served.client()
        try half(client, count: 20_000)
        return client
      }
      for client in slow { #expect(client.readToEnd().hasPrefix("HTTP/1.1 408 ")) }
      #expect(try served.client()("PUT", "/a.json?print=silent", large).status == 204)
    }
  }
}
