import Dendro
import DendroServer
import Testing

/// Clients that take sessions, and those that come after them.
@Suite("serving: the limit of sessions")
struct SessionLimitTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  private func client(
    _ served: Served, _ target: String = "/.ws?v=5&ns=app", from source: String = "127.0.0.1"
  ) throws -> WebSocketClient {
    try WebSocketClient(try HTTPClient(port: served.server.port, from: source), target)
  }

  private func put(_ client: WebSocketClient, _ value: Int = 1) throws -> String? {
    try client("p", "{\"p\":\"/a\",\"d\":\(value)}").last
  }

  /// A client that has a session of its own.
  private func settled(
    _ served: Served, from source: String = "127.0.0.1"
  ) throws -> WebSocketClient {
    let client = try client(served, from: source)
    #expect(try put(client) == ok)
    return client
  }

  @Test("however many sessions are started and not used, a newcomer gets one")
  func starts() async throws {
    try await serving({ $0.sessionLimit = 100 }) { served in
      let http = try served.client()
      for _ in 0..<500 { #expect(try http("GET", "/.lp?start=t&v=5&ns=app").status == 200) }
      for number in 0..<20 {
        #expect(try put(try client(served), number) == ok)
        #expect(try PollClient(port: served.server.port)("p", "{\"p\":\"/b\",\"d\":1}") == [ok])
      }
      let silent = try (0..<150).map { _ in try client(served) }
      #expect(try put(try client(served)) == ok)
      #expect(throws: HTTPClient.Ended.self) { _ = try silent[0].message() }
    }
  }

  @Test("a session that is not polled ends, and one that is not used for signing in")
  func deadlines() async throws {
    try await serving({
      $0.secret = "s"
      $0.firstPollTimeout = .milliseconds(10)
      $0.signInTimeout = .seconds(3)
    }) { served in
      let user = try client(served)
      #expect(try user("gauth", "{\"cred\":\"s\"}").last?.hasPrefix("{\"s\":\"ok\"") == true)
      let stranger = try client(served)
      let polls = try PollSession(served)
      #expect(try stranger.closingCode() == 1013)
      while try polls.http("GET", polls.target(0)).body != "pLPCommand('close');\n" {}
      #expect(try put(user) == ok)
      // Its token is no longer valid for it.
      _ = try user("unauth", "{}")
      #expect(try user.closingCode() == 1013)
    }
  }

  @Test("a message that does not come to its end ends the session")
  func slowMessage() async throws {
    try await serving({ $0.messageTimeout = .milliseconds(10) }) { served in
      let frame = try client(served)
      try frame.frame(0x1, Array("{\"t\"".utf8), isFinal: false)
      let parts = try client(served)
      try parts.send("3")
      try parts.send("{\"t\":")
      let begun = try client(served)
      try begun.send(bytes: [0x81, 0xFE, 0xFF, 0xFF, 1, 2, 3, 4, 5])
      let polls = try PollSession(served)
      _ = try polls.poll(served, 1, "&seg0=0&ts0=2&d0=AAAA")
      for client in [frame, parts, begun] { #expect(try client.closingCode() == 1013) }
      while try polls.http("GET", polls.target(2)).body != "pLPCommand('close');\n" {}
      // Messages without a gap between them are none that takes long.
      let busy = try client(served)
      for number in 0..<100 { #expect(try put(busy, number) == ok) }
    }
  }

  @Test("where all are strangers, a newcomer may only sign in, and takes the place of one of them")
  func signingIn() async throws {
    try await serving({ $0.sessionLimit = 3 }) { served in
      let strangers = try (0..<3).map { _ in try settled(served) }
      let other = try client(served)
      #expect(try other("s", "{\"c\":{}}") == [ok])
      try other.request("p", "{\"p\":\"/no\",\"d\":1}")
      #expect(try other.closingCode() == 1013)
      // Nor is anything done that comes behind, in one piece.
      for actions in [["p", "p", "p"], ["o", "p"], ["q", "p", "m"]] {
        let hasty = try client(served)
        try hasty.send(
          bytes: actions.enumerated().flatMap { number, action in
            let body = "{\"p\":\"/no/k\(number)\",\"d\":{\"a\":1},\"h\":\"\"}"
            let request = "{\"r\":\(number + 1),\"a\":\"\(action)\",\"b\":\(body)}"
            return WebSocketClient.frame(0x1, Array("{\"t\":\"d\",\"d\":\(request)}".utf8))
          })
        #expect(try hasty.closingCode() == 1013)
      }
      #expect(try served.client()("GET", "/no.json?ns=app").body == "null")
      let user = try client(served)
      #expect(try user("s", "{\"c\":{}}") == [ok])
      #expect(try user("gauth", "{\"cred\":\"owner\"}").last?.hasPrefix("{\"s\":\"ok\"") == true)
      #expect(try put(user) == ok)
      #expect(try strangers[0].closingCode() == 1013)
      for stranger in strangers[1...] { #expect(try put(stranger) == ok) }
      for stranger in strangers[1...] {
        #expect(
          try stranger("gauth", "{\"cred\":\"owner\"}").last?.hasPrefix("{\"s\":\"ok\"") == true)
      }
      // There is no stranger any more.
      let late = try client(served)
      try late.request("gauth", "{\"cred\":\"owner\"}")
      #expect(try late.closingCode() == 1013)
      for client in strangers[1...] + [user] { #expect(try put(client) == ok) }
    }
  }

  @Test("an address has so many sessions, and others get in beside it")
  func addresses() async throws {
    try await serving({
      $0.sessionLimit = 4
      $0.addressSessionLimit = 2
      $0.trustsUnsignedTokens = false
    }) { served in
      let http = try served.client()
      let greedy = try (0..<2).map { _ in try settled(served) }
      #expect(try http("GET", "/.lp?start=t&v=5&ns=app").status == 503)
      let others = try (2...3).map { try settled(served, from: "127.0.0.\($0)") }
      // All are taken: one of the address that has the most leaves, but for a client that has fewer.
      #expect(try http("GET", "/.lp?start=t&v=5&ns=app").status == 503)
      let last = try settled(served, from: "127.0.0.4")
      #expect(try greedy[0].closingCode() == 1013)
      let refused = try HTTPClient(port: served.server.port, from: "127.0.0.5")
      let answer = try refused("GET", "/.lp?start=t&v=5&ns=app")
      #expect(answer.status == 503)
      // Used until here: a client that nothing uses any more may be closed.
      for client in [greedy[1], last] + others { #expect(try put(client) == ok) }
    }
  }
}
