import Dendro
import DendroServer
import Testing

/// Clients that begin with long polling and change over to a WebSocket.
@Suite("serving: from polls to a WebSocket")
struct PollUpgradeTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let acknowledgement = "{\"t\":\"c\",\"d\":{\"t\":\"a\",\"d\":{}}}"
  private let end = "{\"t\":\"c\",\"d\":{\"t\":\"n\",\"d\":{}}}"
  private let ping = "{\"t\":\"c\",\"d\":{\"t\":\"p\",\"d\":{}}}"
  private let pong = "{\"t\":\"c\",\"d\":{\"t\":\"o\",\"d\":{}}}"

  private func socket(_ served: Served, for client: PollClient) throws -> WebSocketClient {
    try WebSocketClient(served, "/.ws?v=5&s=\(client.session)&ns=app")
  }

  @Test("the session goes on, with its listens, and what it has registered")
  func change() async throws {
    try await serving { served in
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/left\",\"h\":\"\"}")
      let client = try PollClient(port: served.server.port)
      _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      #expect(try client("o", "{\"p\":\"/left\",\"d\":1}") == [ok])
      let socket = try socket(served, for: client)
      // In place of a hello.
      #expect(socket.hello == acknowledgement)
      for _ in 0..<2 {
        try socket.send(ping)
        #expect(try socket.message() == pong)
      }
      try socket.send(acknowledgement)
      #expect(try client.message() == end)
      // What is sent over the socket comes after what was sent by polls.
      try socket.send(
        "{\"t\":\"d\",\"d\":{\"r\":100,\"a\":\"p\",\"b\":{\"p\":\"/a\",\"d\":\"socket\"}}}")
      try client.request("p", "{\"p\":\"/a\",\"d\":\"polls\"}")
      try client.send(end)
      #expect(throws: HTTPClient.Ended.self) { _ = try client.message() }
      let messages = try (0..<4).map { _ in try socket.push() }
      let pushes = ["polls", "socket"].map { "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":\"\($0)\"}" }
      let answers = [3, 100].map { "\"r\":\($0),\"b\":\(ok)" }
      #expect(messages.filter { pushes.contains($0) } == pushes)
      #expect(messages.filter { answers.contains($0) } == answers)
      #expect(messages.first == pushes[0] && messages.last == answers[1])
      // A browser takes the frame of its polls away.
      let key = "id=\(client.id)&pw=\(client.password)"
      _ = try served.client()("GET", "/.lp?disconn=t&\(key)")
      try client.leave()
      #expect(
        try socket("p", "{\"p\":\"/a\",\"d\":2}")
          == ["\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":2}", ok])
      #expect(try watcher("g", "{\"p\":\"/left\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
      try socket.frame(0x8, [0x03, 0xE8])
      #expect(try watcher.push() == "\"a\":\"d\",\"b\":{\"p\":\"left\",\"d\":1}")
    }
  }

  @Test("a WebSocket that is lost before the client has changed over leaves the polls as they were")
  func lostBefore() async throws {
    try await serving { served in
      let client = try PollClient(port: served.server.port)
      for _ in 0..<100 {
        try {
          let socket = try socket(served, for: client)
          #expect(socket.hello == acknowledgement)
          try socket.send(ping)
          #expect(try socket.message() == pong)
          try socket.frame(0x8, [0x03, 0xE8])
          #expect(try socket.closingCode() == 1000)
        }()
        #expect(try client("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
      }
    }
  }

  @Test("a WebSocket that is lost while the client changes over ends the session")
  func lostWhile() async throws {
    try await serving { served in
      let watcher = try WebSocketClient(served)
      _ = try watcher("q", "{\"p\":\"/left\",\"h\":\"\"}")
      let client = try PollClient(port: served.server.port)
      #expect(try client("o", "{\"p\":\"/left\",\"d\":1}") == [ok])
      try {
        let socket = try socket(served, for: client)
        try socket.send(acknowledgement)
        #expect(try client.message() == end)
      }()
      #expect(try watcher.push() == "\"a\":\"d\",\"b\":{\"p\":\"left\",\"d\":1}")
      #expect(throws: HTTPClient.Ended.self) { _ = try client.message() }
    }
  }

  @Test("what no client sends to change over closes the socket alone")
  func refused() async throws {
    try await serving { served in
      let client = try PollClient(port: served.server.port)
      let early = try socket(served, for: client)
      _ = try early.request("p", "{\"p\":\"/a\",\"d\":1}")
      #expect(try early.closingCode() == 1008)
      #expect(try client("g", "{\"p\":\"/a\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":null}"])
      // A second socket beside one, and those that name a session that has no polls, are to connect again.
      let other = try PollClient(port: served.server.port)
      let first = try socket(served, for: other)
      let second = try socket(served, for: other)
      #expect(first.hello == acknowledgement)
      let reset = "{\"t\":\"c\",\"d\":{\"t\":\"r\",\"d\":\"127.0.0.1\"}}"
      #expect(second.hello == reset)
      #expect(try second.closingCode() == 1000)
      let own = try WebSocketClient(served)
      for session in [own.session, "none", ""] {
        let third = try WebSocketClient(served, "/.ws?v=5&s=\(session)&ns=app")
        #expect(third.hello == reset)
        #expect(try third.closingCode() == 1000)
      }
      // Those that were there go on.
      try first.send(ping)
      #expect(try first.message() == pong)
      #expect(try own("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    }
  }

  @Test("what comes over the socket before the polls have ended is bounded, however short it is")
  func flood() async throws {
    try await serving({ $0.backlogByteLimit = 4096 }) { served in
      let client = try PollClient(port: served.server.port)
      let socket = try socket(served, for: client)
      try socket.send(acknowledgement)
      #expect(try client.message() == end)
      let limit = 32 << 20
      #expect(try socket.flood(WebSocketClient.frame(0x1, []), limit: limit) < limit)
    }
  }

  @Test("a new connection that names the session ends it, wherever it is")
  func named() async throws {
    try await serving { served in
      for hasMoved in [false, true] {
        let client = try PollClient(port: served.server.port)
        #expect(try client("o", "{\"p\":\"/left\",\"d\":\(hasMoved)}") == [ok])
        let socket = try socket(served, for: client)
        if hasMoved {
          try socket.send(acknowledgement)
          try client.send(end)
          #expect(try client.message() == end)
        }
        let new = try WebSocketClient(served, "/.ws?v=5&ls=\(client.session)&ns=app")
        #expect(
          try new("g", "{\"p\":\"/left\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":\(hasMoved)}"])
        #expect(throws: HTTPClient.Ended.self) { while true { _ = try socket.message() } }
        #expect(throws: HTTPClient.Ended.self) { while true { _ = try client.message() } }
      }
    }
  }

  @Test("a server that stops in the middle of it writes what was registered")
  func stop() async throws {
    try await serving { served in
      let client = try PollClient(port: served.server.port)
      #expect(try client("o", "{\"p\":\"/end\",\"d\":1}") == [ok])
      let socket = try socket(served, for: client)
      try socket.send(acknowledgement)
      #expect(try client.message() == end)
      await served.server.stop()
      #expect(throws: HTTPClient.Ended.self) { while true { _ = try client.message() } }
      let value = try await served.database.reference(withPath: "end").getData()
      #expect(value.int == 1)
    }
  }
}
