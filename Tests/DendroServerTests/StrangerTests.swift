import Dendro
import DendroServer
import Testing

/// What the page of a stranger, or a name that leads to the server, can do: nothing, where everybody may do everything.
@Suite("Strangers")
struct StrangerTests {
  private static let evil = ["Origin": "https://evil.example"]
  private static let upgrade = [
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
  ]

  private func answer(
    _ served: Served, _ method: String, _ target: String, _ body: String? = nil,
    _ headers: [String: String] = [:]
  ) throws -> HTTPClient.Answer {
    let client = try served.client()
    try client.send(HTTPClient.request(method, target, body, headers))
    return try client.answer(hasBody: method != "HEAD")
  }

  @Test("no page of a stranger reads or writes a server that everybody may use")
  func pages() async throws {
    try await serving { served in
      try await served.database.reference().setValue(["kept": true])
      let attacks: [(String, String, String?, [String: String])] = [
        ("POST", "/.json?x-http-method-override=DELETE", "", Self.evil),
        ("POST", "/list.json", "1", Self.evil),
        ("POST", "/list.json", "1", ["Origin": "null"]),
        ("POST", "/list.json", "1", ["Sec-Fetch-Site": "cross-site"]),
        ("PUT", "/a.json", "1", Self.evil), ("OPTIONS", "/a.json", nil, Self.evil),
        ("GET", "/.json", nil, Self.evil), ("GET", "/.status.json", nil, Self.evil),
        ("GET", "/.json", nil, Self.evil.merging(["Accept": "text/event-stream"]) { $1 }),
        ("GET", "/.json?callback=f", nil, ["Sec-Fetch-Site": "cross-site"]),
        ("GET", "/.lp?start=t&v=5&cb=1", nil, ["Sec-Fetch-Site": "cross-site"]),
        ("GET", "/.ws?v=5", nil, Self.evil.merging(Self.upgrade) { $1 }),
        ("GET", "/", nil, ["Host": "evil.example"]),
        ("PUT", "/a.json", "1", ["Host": "evil.example"]),
        ("GET", "/.status.json", nil, ["Host": "evil.example:9000"]),
        ("GET", "/.ws?v=5", nil, Self.upgrade.merging(["Host": "evil.example"]) { $1 }),
        ("GET", "/.lp?start=t&v=5", nil, ["Host": "evil.example"]),
      ]
      for (method, target, body, headers) in attacks {
        let answer = try answer(served, method, target, body, headers)
        #expect(answer.status == 403, "\(method) \(target) \(headers): \(answer)")
        let names = answer.headers.keys.filter { $0.hasPrefix("access-control-") }
        #expect(names.isEmpty, "\(method) \(target): \(names)")
      }
      let kept = try await served.database.reference().getData()
      #expect(kept.count == 1 && kept.hasChild("kept"))
    }
  }

  @Test("pages of this machine, its own ones, and other clients go on as before")
  func friends() async throws {
    try await serving { served in
      let port = served.server.port
      for origin in ["http://localhost:3000", "http://127.0.0.1:\(port)"] {
        let fields = ["Origin": origin, "Host": "127.0.0.1:\(port)"]
        #expect(try answer(served, "PUT", "/a.json", "1", fields).status == 200)
        let read = try answer(served, "GET", "/a.json", nil, fields)
        #expect(read.body == "1" && read.headers["access-control-allow-origin"] == "*")
        let socket = fields.merging(Self.upgrade) { $1 }
        let client = try served.client()
        try client.send(HTTPClient.request("GET", "/.ws?v=5", nil, socket))
        #expect(try client.head().status == 101)
      }
      #expect(try answer(served, "GET", "/a.json?callback=f", nil).body == "f(1);")
      for host in ["localhost", "[::1]:1", "host.docker.internal:9000", "nas"] {
        #expect(try answer(served, "GET", "/a.json", nil, ["Host": host]).status == 200, "\(host)")
      }
    }
    try await serving({
      $0.hostNames = ["db.example.com"]
      $0.origins = ["https://app.example.com"]
    }) { served in
      let fields = ["Host": "db.example.com", "Origin": "https://app.example.com"]
      let written = try answer(served, "PUT", "/a.json?ns=a", "1", fields)
      #expect(written.status == 200)
    }
  }

  @Test("a server that wants a proof answers all pages, as production does")
  func proofs() async throws {
    try await serving({
      $0.secret = "the secret"
    }) { served in
      let fields = ["Host": "db.example.com", "Origin": "https://evil.example"]
      let refused = try answer(served, "GET", "/.json?ns=a", nil, fields)
      #expect(refused.status == 401 && refused.headers["access-control-allow-origin"] == "*")
      let read = try answer(served, "GET", "/.json?ns=a&auth=the%20secret", nil, fields)
      #expect(read.status == 200)
    }
  }

  @Test("a secret alone means that others may do nothing")
  func secret() async throws {
    try await serving({
      $0.secret = "the secret"
    }) { served in
      let fields = ["Authorization": "Bearer the secret"]
      let written = try answer(served, "PUT", "/a.json", "1", fields)
      #expect(written.status == 200)
      #expect(try answer(served, "GET", "/a.json").status == 401)
      #expect(try answer(served, "PUT", "/a.json", "1").status == 401)
    }
  }

  @Test("a server that others reach does not start without a word about who may do what")
  func exposed() async throws {
    let database = Database.inMemory()
    var options = DatabaseServerOptions.patient
    options.host = "0.0.0.0"
    await #expect {
      try await DatabaseServer.start(serving: database, options: options)
    } throws: {
      ($0 as? DatabaseServerError)?.message.hasPrefix("0.0.0.0 may be reached by others") ?? false
    }
    options.authorizer = LockedAuthorizer()
    await (try DatabaseServer.start(serving: database, options: options)).stop()
    options.hostNames = ["a b"]
    await #expect(throws: DatabaseServerError.self) {
      try await DatabaseServer.start(serving: database, options: options)
    }
    try await database.close()
  }

  @Test("a target that is not UTF-8 is refused, and not written under another key")
  func invalidTarget() async throws {
    try await serving { served in
      for key in [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0xAF]] as [[UInt8]] {
        let client = try served.client()
        try client.send(
          bytes: Array("PUT /a".utf8) + key
            + Array(".json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1".utf8))
        #expect(try client.answer().status == 400, "\(key)")
      }
      #expect(try await !served.database.reference().getData().exists())
    }
  }

  @Test("no browser takes an answer for something else than it is")
  func nosniff() async throws {
    try await serving { served in
      for (method, target, headers) in [
        ("GET", "/a.json", [:]), ("GET", "/a.json?callback=f", [:]), ("PUT", "/a.json", [:]),
        ("GET", "/a", [:]), ("GET", "/.status.json", [:]), ("GET", "/.metrics", [:]),
        ("GET", "/", [:]), ("GET", "/.lp?start=t&v=5", [:]), ("GET", "/.json", Self.evil),
        ("OPTIONS", "/a.json", [:]), ("HEAD", "/a.json", [:]),
      ] as [(String, String, [String: String])] {
        let body = method == "PUT" ? "1" : nil
        let answer = try answer(served, method, target, body, headers)
        #expect(answer.headers["x-content-type-options"] == "nosniff", "\(method) \(target)")
      }
      let stream = try served.client()
      try stream.send(HTTPClient.request("GET", "/.json", nil, ["Accept": "text/event-stream"]))
      #expect(try stream.head().headers["x-content-type-options"] == "nosniff")
    }
  }
}
