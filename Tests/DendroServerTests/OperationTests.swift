import Dendro
import DendroServer
import Testing

@Suite("serving: figures and limits")
struct OperationTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  /// The figures by their names and labels.
  private func figures(_ served: Served) throws -> [String: Double] {
    let answer = try served.client()("GET", "/.metrics")
    #expect(answer.status == 200)
    #expect(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
    var figures: [String: Double] = [:]
    for line in answer.body.split(separator: "\n") where !line.hasPrefix("#") {
      let parts = line.split(separator: " ")
      #expect(parts.count == 2)
      figures[String(parts[0])] = Double(parts[1])
    }
    return figures
  }

  @Test("figures count what clients do")
  func counts() async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      _ = try client("p", "{\"p\":\"/a\",\"d\":1}")
      let stream = try served.stream("/a.json")
      _ = try stream.event()
      _ = try served.client()("PUT", "/b.json", "\"twelve\"")
      let found = try figures(served)
      #expect(found["dendro_sessions"] == 1)
      #expect(found["dendro_streams"] == 1)
      #expect(found["dendro_listens"] == 1)
      #expect(found["dendro_messages_total"] == 2)
      #expect(found["dendro_write_seconds_count"] == 2)
      #expect(found["dendro_write_seconds_bucket{le=\"+Inf\"}"] == 2)
      #expect((found["dendro_write_seconds_sum"] ?? 0) > 0)
      #expect((found["dendro_received_bytes_total"] ?? 0) >= 8)
      #expect((found["dendro_resident_bytes"] ?? 0) > 1_000_000)
      #expect(found["dendro_last_lsn{database=\"default\"}"] == 2)
      #expect(found["dendro_writes_total{database=\"default\"}"] == 2)
    }
  }

  @Test("a client that has shut down writing gets the status all the same")
  func halfClosed() async throws {
    try await serving { served in
      for _ in 0..<20 {
        let client = try served.client()
        try client.send(HTTPClient.request("GET", "/.status.json"))
        client.shutDownWriting()
        #expect(try client.answer().status == 200)
      }
    }
  }

  @Test("a stream whose client has left gives its place back before the next keep-alive is due")
  func leftStreams() async throws {
    try await serving({ $0.keepAliveInterval = .seconds(3600) }) { served in
      var streams = try (0..<3).map { _ in try served.stream("/a.json") }
      for stream in streams { _ = try stream.event() }
      // It goes on to read.
      streams[0].shutDownWriting()
      streams.removeLast(2)
      try await eventually("those of clients that have left end") {
        try figures(served)["dendro_streams"] == 1
      }
      _ = try served.client()("PUT", "/a.json", "1")
      var event = try streams[0].event()
      while event.hasPrefix("keep-alive") { event = try streams[0].event() }
      #expect(event == "put {\"path\":\"/\",\"data\":1}")
    }
  }

  @Test("figures and names are not for everybody")
  func restricted() async throws {
    try await serving({
      $0.authorizer = UsersAuthorizer()
      $0.secret = "s3cret"
    }) { served in
      let http = try served.client()
      let administrator = ["Authorization": "Bearer s3cret"]
      #expect(try http("GET", "/.metrics").status == 401)
      #expect(try http("GET", "/.metrics", nil, administrator).status == 200)
      #expect(try http("PUT", "/.metrics", "1", administrator).status == 405)
      #expect(try http("GET", "/.status.json").body == "{\"status\":\"ok\",\"databases\":{}}")
      #expect(
        try http("GET", "/.status.json", nil, administrator).body
          == "{\"status\":\"ok\",\"databases\":{\"default\":{\"lastLSN\":0,\"durableLSN\":0,\"lag\":0}}}"
      )
    }
  }

  @Test("histograms add up")
  func histogram() {
    let histogram = Histogram()
    for seconds in [0.000_01, 0.000_05, 0.002, 3, 100] { histogram.observe(seconds: seconds) }
    let figures = histogram.figures
    #expect(figures.count == 5)
    #expect(figures.cumulative.first == 2)
    #expect(figures.cumulative.last == 4)
    #expect(abs(figures.sum - 103.002_06) < 1e-9)
  }

  @Test("no more WebSockets than the limit")
  func sessions() async throws {
    try await serving({
      $0.sessionLimit = 2
      $0.trustsUnsignedTokens = false
    }) { served in
      let first = try WebSocketClient(served)
      #expect(try first("p", "{\"p\":\"/a\",\"d\":0}") == [ok])
      do {
        let second = try WebSocketClient(served)
        #expect(try second("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
        let third = try served.client()
        try third.send(
          "GET /.ws?v=5 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        #expect(try third.head().status == 503)
        #expect(try second("o", "{\"p\":\"/gone\",\"d\":true}") == [ok])
        #expect(try first("q", "{\"p\":\"/gone\",\"h\":\"\"}") == ["{\"s\":\"ok\",\"d\":{}}"])
      }
      // The place of one that has left is free.
      #expect(try first.push() == "\"a\":\"d\",\"b\":{\"p\":\"gone\",\"d\":true}")
      while try served.client()("GET", "/.metrics").body.contains("dendro_sessions 2") {}
      #expect(try WebSocketClient(served)("p", "{\"p\":\"/a\",\"d\":2}") == [ok])
    }
  }

  @Test("a client that sends too fast waits, and nothing is lost")
  func rate() async throws {
    try await serving({ $0.messageRateLimit = 40 }) { served in
      let fast = try WebSocketClient(served)
      for number in 1...100 { try fast.request("p", "{\"p\":\"/n\",\"d\":\(number)}") }
      // Another client is not slowed down.
      let other = try WebSocketClient(served)
      #expect(try other("p", "{\"p\":\"/o\",\"d\":1}") == [ok])
      for number in 1...100 { #expect(try fast.push() == "\"r\":\(number),\"b\":\(ok)") }
      #expect(try other("g", "{\"p\":\"/n\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":100}"])
    }
  }

  @Test("what a session keeps in memory is bounded")
  func memory() async throws {
    try await serving({
      $0.sessionByteLimit = 20_000
      $0.backlogByteLimit = 10_000
    }) { served in
      let client = try WebSocketClient(served)
      let text = String(repeating: "x", count: 12_000)
      #expect(try client("o", "{\"p\":\"/a\",\"d\":\"\(text)\"}") == [ok])
      // What replaces something takes its room.
      #expect(try client("o", "{\"p\":\"/a\",\"d\":\"\(text)\"}") == [ok])
      for place in ["/b", "/b/.priority"] {
        #expect(
          try client("o", "{\"p\":\"\(place)\",\"d\":\"\(text)\"}")[0]
            .hasPrefix("{\"s\":\"too_big\""))
      }
      // What is not registered any more does not count.
      #expect(try client("oc", "{\"p\":\"/a\",\"d\":null}") == [ok])
      #expect(try client("o", "{\"p\":\"/b\",\"d\":\"\(text)\"}") == [ok])
      // A client that asks for much and reads nothing is closed.
      _ = try served.client()("PUT", "/big.json", "\"\(text)\"")
      let greedy = try WebSocketClient(served, receiveBuffer: 4096)
      for _ in 0..<2000 { _ = try? greedy.request("g", "{\"p\":\"/big\",\"q\":{}}") }
      var count = 0
      while (try? greedy.message()) != nil { count += 1 }
      #expect(count < 2000)
      #expect(try client("g", "{\"p\":\"/none\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
    }
  }
}
