import Dendro
import DendroServer
import Synchronization
import Testing

/// Clients that take connections and send next to nothing: they are given up, and leave room for others meanwhile.
@Suite("serving: slow clients")
struct SlowClientTests {
  private static let halfHead = "GET /.json HTTP/1.1\r\nHost: x\r\nA: "

  /// Sends a byte now and then until the server takes no more.
  private func drip(_ client: HTTPClient) async throws {
    while true {
      do {
        try client.send("x")
      } catch { return }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  @Test("a head that comes a byte at a time is given up", arguments: ["", halfHead])
  func head(beginning: String) async throws {
    let log = Mutex<[AccessRecord]>([])
    try await serving({
      $0.headTimeout = .milliseconds(200)
      $0.accessLog = { record in log.withLock { $0.append(record) } }
    }) { served in
      let client = try served.client()
      try client.send(beginning)
      try await drip(client)
      let text = client.readToEnd()
      if beginning.isEmpty {
        #expect(text.isEmpty)
      } else {
        #expect(text == "" || text.hasPrefix("HTTP/1.1 408 "), "\(text)")
        // The line may come behind the answer.
        let deadline = ContinuousClock.now + .seconds(60)
        while log.withLock({ $0.isEmpty }), .now < deadline {
          try await Task.sleep(for: .milliseconds(5))
        }
        #expect(log.withLock { $0.map(\.status) } == [408])
      }
    }
  }

  @Test("a client that has sent half a head, or nothing, learns that it was too slow")
  func silence() async throws {
    try await serving({ $0.headTimeout = .seconds(2) }) { served in
      let kept = try served.client()
      #expect(try kept("PUT", "/a.json", "1").status == 200)
      let half = try served.client()
      try half.send(Self.halfHead)
      let silent = try served.client()
      #expect(half.readToEnd().hasPrefix("HTTP/1.1 408 "))
      #expect(silent.readToEnd() == "")
      // Between two requests a client may be silent for longer.
      #expect(try kept("GET", "/a.json").body == "1")
      try kept.send(Self.halfHead)
      #expect(kept.readToEnd().hasPrefix("HTTP/1.1 408 "))
    }
  }

  @Test("an address with half a head on every connection that it may have locks nobody out")
  func room() async throws {
    try await serving({
      $0.connectionLimit = 40
      $0.headTimeout = .seconds(3600)
    }) { served in
      var held: [HTTPClient] = []
      for _ in 0..<60 {
        let client = try served.client()
        try? client.send(Self.halfHead)
        held.append(client)
      }
      for number in 2...4 {
        let newcomer = try HTTPClient(port: served.server.port, from: "127.0.0.\(number)")
        #expect(try newcomer("PUT", "/\(number).json", "1").status == 200)
      }
      // All but a quarter of the connections were not taken.
      for client in held[10...] { #expect(client.readToEnd() == "") }
      // Once they have left, the address is served again.
      held = []
      var isServed = false
      for _ in 0..<10_000 where !isServed {
        isServed = (try? served.client()("GET", "/2.json").body) == "1"
      }
      #expect(isServed)
    }
  }

  @Test("behind a proxy the last entry of its header field says where a client is")
  func proxy() async throws {
    let log = Mutex<[String]>([])
    try await serving({
      $0.connectionLimitByAddress = 2
      $0.trustedProxyHeader = "X-Forwarded-For"
      $0.accessLog = { record in log.withLock { $0.append(record.client) } }
    }) { served in
      func fields(_ value: String) -> [String: String] { ["X-Forwarded-For": value] }
      var streams: [HTTPClient] = []
      for value in ["192.0.2.1", "192.0.2.2,192.0.2.1:90", "2001:db8::1", "x, [2001:db8::2]:1"] {
        streams.append(try served.stream("/.json", fields(value)))
      }
      for (value, status) in [
        ("192.0.2.1", 503), ("192.0.2.2, 192.0.2.1", 503), ("2001:db8::ffff", 503),
        ("192.0.2.1, 192.0.2.2", 200), ("2001:db8:0:1::1", 200), ("nobody", 200), ("", 200),
      ] {
        let http = try served.client()
        #expect(try http("GET", "/.json", nil, fields(value)).status == status, "\(value)")
      }
      // Connections that wait for a request are the proxy's, and count for no client.
      let waiting = try (0..<10).map { _ in
        let http = try served.client()
        #expect(try http("GET", "/.json", nil, fields("192.0.2.3")).status == 200)
        return http
      }
      #expect(try waiting[0]("GET", "/.json", nil, fields("192.0.2.3")).status == 200)
      streams = []
      var isServed = false
      for number in 0..<10_000 where !isServed {
        _ = try served.client()("PUT", "/a.json", "\(number)")
        isServed = try served.client()("GET", "/.json", nil, fields("192.0.2.1")).status == 200
      }
      #expect(isServed)
    }
    let clients = log.withLock { Set($0) }
    #expect(clients.isSuperset(of: ["192.0.2.1", "192.0.2.1:90", "[2001:db8::2]:1", "192.0.2.2"]))
    #expect(!clients.contains("192.0.2.2,192.0.2.1:90") && !clients.contains("nobody"))
  }

  @Test("a server whose proxy's header field has no name does not start")
  func noName() async throws {
    let database = Database.inMemory()
    for name in ["", "a b", "a:", "é"] {
      var options = DatabaseServerOptions.patient
      options.trustedProxyHeader = name
      await #expect(throws: DatabaseServerError.self) {
        try await DatabaseServer.start(serving: database, options: options)
      }
    }
    try await database.close()
  }
}
