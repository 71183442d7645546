import Dendro
import DendroServer
import DendroTestSupport
import Testing

/// Clients of long polling without a right, without an end and without sense.
@Suite("serving: hostile polls")
struct HostilePollTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let close = "pLPCommand('close');\n"

  // MARK: Keys, and the end

  @Test("a wrong id or password reaches no session, and harms none")
  func keys() async throws {
    try await serving { served in
      let client = try PollClient(port: served.server.port)
      let http = try served.client()
      let message = PollSession.segment(0, PollSession.put(1, "/a", "1"))
      for key in [
        "id=\(client.id)&pw=x", "id=\(client.id)", "id=x&pw=\(client.password)", "pw=x",
        "id=\(client.session)&pw=\(client.password)",
      ] {
        #expect(try http("GET", "/.lp?\(key)&ser=9\(message)").body == close)
        #expect(try http("GET", "/.lp?\(key)&disconn=t").body == close)
        #expect(try http("GET", "/.lp?\(key)&dframe=t").body == close)
      }
      #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
    }
  }

  @Test("the page of a frame says that the client leaves, with its key")
  func page() async throws {
    try await serving { served in
      let client = try PollClient(port: served.server.port)
      let key = "id=\(client.id)&pw=\(client.password)"
      let answer = try served.client()("GET", "/.lp?dframe=t&\(key)")
      #expect(answer.headers["content-type"] == "text/html; charset=utf-8")
      #expect(answer.body.contains("fetch(\"/.lp?disconn=t&\(key)\""))
      // The held poll gets its end.
      #expect(try served.client()("GET", "/.lp?disconn=t&\(key)").body == close)
      #expect(throws: HTTPClient.Ended.self) { _ = try client.message() }
    }
  }

  @Test("a client that polls no more leaves, and one that waits is answered in time")
  func silence() async throws {
    try await serving({
      $0.pollHold = .zero
      $0.pollSilence = .seconds(3)
    }) { served in
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/left\",\"h\":\"\"}")
      let session = try PollSession(served)
      let register = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"o\",\"b\":{\"p\":\"/left\",\"d\":1}}}"
      #expect(
        try session.http("GET", session.target(1, PollSession.segment(0, register))).body.hasPrefix(
          "pRTLPCB(1,"))
      #expect(try watcher.push() == "\"a\":\"d\",\"b\":{\"p\":\"left\",\"d\":1}")
      // It ends right behind that write.
      var number = 2
      while try session.http("GET", session.target(number)).body != close {
        number += 1
        try await Task.sleep(for: .milliseconds(50))
      }
      // One that was never polled ends as well.
      let unpolled = try PollSession(served)
      while try unpolled.http("GET", "/.lp?\(unpolled.key)&dframe=t").body != close {
        try await Task.sleep(for: .milliseconds(50))
      }
    }
    try await serving({ $0.pollHold = .zero }) { served in
      let session = try PollSession(served)
      #expect(try session.http("GET", session.target(1)).body == "pRTLPCB(1,[]);\n")
      #expect(try session.http("GET", session.target(2)).body == "pRTLPCB(2,[]);\n")
    }
  }

  // MARK: Bounds

  @Test("sessions are counted with WebSockets")
  func sessionLimit() async throws {
    try await serving({
      $0.sessionLimit = 2
      $0.trustsUnsignedTokens = false
    }) { served in
      let socket = try WebSocketClient(served)
      #expect(try socket("p", "{\"p\":\"/a\",\"d\":0}") == [ok])
      let client = try PollClient(port: served.server.port)
      #expect(try client("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
      let http = try served.client()
      #expect(try http("GET", "/.lp?start=t&v=5&ns=app").status == 503)
      try client.leave()
      #expect(try http("GET", "/.lp?start=t&v=5&ns=app").status == 200)
      _ = socket
    }
  }

  @Test("a message over the limit is refused by its number, and the session goes on")
  func tooLarge() async throws {
    try await serving({ $0.messageByteLimit = 20_000 }) { served in
      let client = try PollClient(port: served.server.port)
      let text = String(repeating: "x", count: 30_000)
      #expect(
        try client("p", "{\"p\":\"/a\",\"d\":\"\(text)\"}")[0].hasPrefix("{\"s\":\"too_big\""))
      #expect(try client("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    }
  }

  @Test("a client that sends what none sends is made to leave")
  func broken() async throws {
    try await serving { served in
      for segments in [
        "&seg0=0&ts0=1&d0=!!", "&seg0=0&ts0=1&d0=_w..",  // No Base64, no UTF-8.
      ] {
        let session = try PollSession(served)
        #expect(try session.http("GET", session.target(1, segments)).body == close)
        #expect(try session.http("GET", session.target(2)).body == close)
      }
      // Segments that have no turn are bounded.
      let session = try PollSession(served)
      let data = String(repeating: "A", count: 2_000)
      let polls = try (1...40).map { serial in
        try session.poll(served, serial, "&seg0=\(serial)&ts0=2&d0=\(data)")
      }
      #expect(try PollClient.answers(of: polls[39].answer().body).lastNumber != nil)
      #expect(try session.http("GET", session.target(41)).body == close)
    }
  }

  @Test("a client that does not poll gets the whole value once it does")
  func slowReader() async throws {
    try await serving({ $0.backlogByteLimit = 16 << 10 }) { served in
      let session = try PollSession(served)
      let listen = "{\"t\":\"d\",\"d\":{\"r\":1,\"a\":\"q\",\"b\":{\"p\":\"/a\",\"h\":\"\"}}}"
      _ = try session.http("GET", session.target(1, PollSession.segment(0, listen)))
      let http = try served.client()
      let text = String(repeating: "x", count: 1_000)
      let count = 200
      for number in 1...count {
        _ = try http("PUT", "/a.json?ns=app", "{\"n\":\(number),\"t\":\"\(text)\"}")
      }
      var serial = 1
      var messages: [String] = []
      repeat {
        serial += 1
        let body = try session.http("GET", session.target(serial)).body
        messages += try PollClient.answers(of: body).answers.flatMap(\.messages)
      } while messages.last?.contains("\"n\":\(count),") != true
      #expect(messages.count < count / 2)
    }
  }

  @Test("items at random leave the server as it was", arguments: 0..<3)
  func garbage(seed: UInt64) async throws {
    try await serving { served in
      var generator = SeededGenerator(seed: seed)
      let names = [
        "seg0", "ts0", "d0", "seg1", "ts1", "d1", "ser", "disconn", "dframe", "start", "v",
      ]
      let values = [
        "0", "1", "2", "5", "t", "-1", "e30.", "AAAA", "%FF", "", "99999999999999999999",
      ]
      for _ in 0..<40 {
        let session = try PollSession(served)
        for serial in 0..<3 {
          let items = (0..<generator.below(6)).map { _ in
            "&\(names[generator.below(names.count)])=\(values[generator.below(values.count)])"
          }
          let http = try session.poll(served, serial, items.joined())
          if generator.oneIn(2) { http.shutDownWriting() }
        }
      }
      #expect(try PollClient(port: served.server.port)("p", "{\"p\":\"/alive\",\"d\":1}") == [ok])
    }
  }
}
