import Dendro
import DendroServer
import DendroTestSupport
import Testing

@Suite("serving: hostile clients")
struct HostileClientTests {
  @Test("bytes that are no request leave the server as it was", arguments: 0..<4)
  func garbage(seed: UInt64) async throws {
    try await serving({ $0.bodyByteLimit = 1000 }) { served in
      var generator = SeededGenerator(seed: seed)
      let pieces = [
        "GET ", "PUT ", "/", "a.json", "%", "?", "&ns=", " HTTP/1.1", " HTTP/9", "\r\n", "\n",
        "\r\n\r\n",
        "Host: x\r\n", "Content-Length: 5\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999\r\n",
        "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", "0\r\n\r\n", "ffffffffffffffff\r\n",
        "\u{0}", "é", "{}",
        "Accept: text/event-stream\r\n", "Expect: 100-continue\r\n", "Connection: Upgrade\r\n",
        String(repeating: "x", count: 20_000),
      ]
      for _ in 0..<60 {
        let client = try served.client()
        var text = ""
        for _ in 0..<generator.below(12) { text += pieces[generator.below(pieces.count)] }
        try? client.send(text)
        client.shutDownWriting()
      }
      let http = try served.client()
      #expect(try http("PUT", "/alive.json", "true").status == 200)
    }
  }

  @Test("a body that is too long is refused, whether it says so or not")
  func tooLong() async throws {
    try await serving({ $0.bodyByteLimit = 1000 }) { served in
      let long = "\"" + String(repeating: "x", count: 2000) + "\""
      let announced = try served.client()
      try announced.send("PUT /a.json HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n")
      #expect(try announced.answer().status == 413)
      let chunked = try served.client()
      try chunked.send("PUT /a.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
      try chunked.send("\(String(long.utf8.count, radix: 16))\r\n\(long)\r\n0\r\n\r\n")
      let refused = try chunked.answer()
      #expect(refused.status == 413)
      #expect(refused.body == "{\n  \"error\" : \"Payload is too large\"\n}\n")
      let good = try served.client()
      try good.send("PUT /a.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
      try good.send("3\r\n\"ab\r\n")
      try good.send("2\r\nc\"\r\n0\r\n\r\n")
      #expect(try good.answer().body == "\"abc\"")
    }
  }

  @Test(
    "large bodies of some clients take no more than a bound, and small ones are served beside them")
  func manyBodies() async throws {
    try await serving({
      $0.bodiesByteLimit = 100_000
      $0.bodiesByteLimitByAddress = 100_000
    }) { served in
      let http = try served.client()
      let large = "\"" + String(repeating: "x", count: 80_000) + "\""
      for _ in 0..<3 {
        var refused: HTTPClient.Answer?
        var slow: HTTPClient?
        // Of two bodies at once either may be the one that is refused.
        for _ in 0..<1000 where refused?.status != 503 {
          slow?.shutDownWriting()
          let next = try served.client()
          // It never sends the rest of its body.
          try next.send(
            "PUT /a.json HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + large)
          slow = next
          refused = try http("PUT", "/b.json", large)
        }
        #expect(refused?.status == 503)
        #expect(refused?.body.contains("The server is reading 100000 bytes of requests") == true)
        #expect(try http("PUT", "/c.json", "1").status == 200)
        slow?.shutDownWriting()
        while try http("PUT", "/b.json", large).status == 503 {}
      }
    }
  }

  @Test("requests sent at once are answered in their order")
  func pipelined() async throws {
    try await serving { served in
      let client = try served.client()
      var text = ""
      for number in 0..<100 { text += HTTPClient.request("PUT", "/n.json", "\(number)") }
      try client.send(text)
      for number in 0..<100 { #expect(try client.answer().body == "\(number)") }
    }
  }

  @Test("clients that leave in the middle of a request or an answer")
  func leaving() async throws {
    try await serving { served in
      let http = try served.client()
      let body = "\"" + String(repeating: "x", count: 5_000_000) + "\""
      _ = try http("PUT", "/big.json?print=silent", body)
      for _ in 0..<20 {
        let half = try served.client()
        try half.send("PUT /half.json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"a\":")
        let reader = try served.client()
        try reader.send(HTTPClient.request("GET", "/big.json"))
        let writer = try served.client()
        try writer.send(HTTPClient.request("PUT", "/w.json", "1", ["if-match": "null_etag"]))
      }
      #expect(try http("GET", "/half.json").body == "null")
      #expect(try http("GET", "/big.json").body == body)
    }
  }

  @Test("a client whose end comes with its last bytes gets its answer, and is not waited for")
  func end() async throws {
    try await serving { served in
      #expect(try served.client()("PUT", "/a.json", "1").status == 200)
      for _ in 0..<3 {
        let whole = try served.client()
        let half = try served.client()
        let part = try served.client()
        for client in [whole, half, part] { client.holdBack() }
        try whole.send(HTTPClient.request("GET", "/a.json"))
        try half.send("PUT /a.json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n2")
        try part.send("PUT /a.json HTTP/1.1\r\nHost")
        for client in [whole, half, part] { client.shutDownWriting() }
        #expect(whole.readToEnd().hasSuffix("\r\n\r\n1"))
        #expect(half.readToEnd() == "")
        #expect(part.readToEnd() == "")
      }
    }
  }

  @Test(
    "an answer that is being sent when the server stops is sent to its end, whatever was refused before"
  )
  func refusedBeforeTheEnd() async throws {
    try await serving({ $0.bodyByteLimit = 64 << 20 }) { served in
      for _ in 0..<3 {
        let refused = try served.client()
        try refused.send("PUT /a.json HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n")
        #expect(try refused.answer().status == 413)
        refused.shutDownWriting()
        #expect(refused.readToEnd().isEmpty)
      }
      // More than the system takes at once, and little enough to be read in time.
      let count = 8_000_000
      let body = "\"" + String(repeating: "x", count: count) + "\""
      #expect(try served.client()("PUT", "/big.json?print=silent", body).status == 204)
      let reader = try HTTPClient(port: served.server.port, receiveBuffer: 64 << 10)
      try reader.send(HTTPClient.request("GET", "/big.json"))
      #expect(try reader.head().status == 200)
      async let stopped: Void = served.server.stop()
      // The server has stopped accepting.
      while (try? served.client()) != nil { await Task.yield() }
      #expect(reader.readToEnd().utf8.count > count)
      await stopped
    }
  }

  @Test("malformed requests that come while the server stops")
  func malformedAtTheEnd() async throws {
    for _ in 0..<5 {
      try await serving { served in
        let clients = try (0..<200).map { _ in
          let client = try served.client()
          try client.send("PUT /h.json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
          return client
        }
        async let stopped: Void = served.server.stop()
        for client in clients { try? client.send("zz\r\nbad\r\n") }
        await stopped
      }
    }
  }

  @Test("no two servers at one address")
  func addressInUse() async throws {
    try await serving { served in
      var options = DatabaseServerOptions.patient
      options.host = "999.1.1.1"
      await #expect(throws: DatabaseServerError.self) {
        try await DatabaseServer.start(serving: Database.inMemory(), options: options)
      }
      let closed = Database.inMemory()
      try await closed.close()
      await #expect(throws: DatabaseError.self) {
        try await DatabaseServer.start(serving: closed)
      }
    }
  }
}
