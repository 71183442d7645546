import Dendro
import DendroPlatform
import DendroRules
import DendroServer
import DendroTestSupport
import DendroTesting
import Dispatch
import Synchronization
import Testing

@Suite("serving: more namespaces than may be open")
struct NamespaceTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  /// Serves a folder in which at most `openCount` databases are open.
  private func serving(
    _ limits: OpeningNamespaces.Limits, in folder: TemporaryFolder,
    _ body: (OpeningNamespaces, UInt16) async throws -> Void
  ) async throws {
    let namespaces = OpeningNamespaces(
      in: folder.path + "/data", default: "default", limits: limits, options: DatabaseOptions())
    try await serving(namespaces, body)
  }

  private func serving(
    _ namespaces: OpeningNamespaces, options: DatabaseServerOptions = .patient,
    _ body: (OpeningNamespaces, UInt16) async throws -> Void
  ) async throws {
    let server = try DatabaseServer.start(namespaces, options)
    do {
      try await body(namespaces, server.port)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  @Test("1,000 namespaces, one after the other, of which 4 may be open")
  func many() async throws {
    let folder = try TemporaryFolder()
    try await serving(OpeningNamespaces.Limits(openCount: 4), in: folder) { namespaces, port in
      let http = try HTTPClient(port: port)
      for number in 0..<1_000 {
        #expect(try http("PUT", "/n.json?ns=n\(number)", "\(number)").status == 200)
      }
      #expect(namespaces.all.count <= 4)
      #expect(namespaces.names.count == 1_000)
      for number in stride(from: 0, to: 1_000, by: 37) {
        #expect(try http("GET", "/n.json?ns=n\(number)").body == "\(number)")
      }
    }
  }

  @Test("clients at the same time, whose namespaces are closed for one another")
  func concurrent() async throws {
    let folder = try TemporaryFolder()
    let wrong = Mutex<[String]>([])
    let (clients, names, rounds) = (6, 12, 60)
    try await serving(OpeningNamespaces.Limits(openCount: 3), in: folder) { namespaces, port in
      await withCheckedContinuation { continuation in
        let done = DispatchGroup()
        for client in 0..<clients {
          DispatchQueue(label: "client").async(group: done) {
            var random = SeededGenerator(seed: UInt64(client))
            do {
              let http = try HTTPClient(port: port)
              for round in 0..<rounds {
                let name = "n\(Int.random(in: 0..<names, using: &random))"
                let answer = try http(
                  "PATCH", "/.json?ns=\(name)",
                  "{\"count\":{\".sv\":{\"increment\":1}},\"c\(client)\":\(round)}")
                if answer.status != 200 { wrong.withLock { $0.append("\(name) \(answer)") } }
                let read = try http("GET", "/c\(client).json?ns=\(name)").body
                if read != "\(round)" { wrong.withLock { $0.append("\(name): \(read)") } }
              }
            } catch {
              wrong.withLock { $0.append("client \(client): \(error)") }
            }
          }
        }
        done.notify(queue: .global()) { continuation.resume() }
      }
      #expect(wrong.value == [])
      #expect(namespaces.all.count <= 3)
      let http = try HTTPClient(port: port)
      let counts = try (0..<names).map { name in
        Int(try http("GET", "/count.json?ns=n\(name)").body) ?? 0
      }
      #expect(counts.reduce(0, +) == clients * rounds)
    }
  }

  @Test("what is listened to stays open, and the rest gives way; a server that is full says so")
  func listeners() async throws {
    let folder = try TemporaryFolder()
    try await serving(OpeningNamespaces.Limits(openCount: 4), in: folder) { namespaces, port in
      let http = try HTTPClient(port: port)
      let socket = try WebSocketClient(port: port, "/.ws?v=5&ns=socket")
      let polls = try PollClient(port: port, "ns=polls")
      _ = try http("PUT", "/a.json?ns=stream", "0")
      let stream = try HTTPClient(port: port)
      try stream.send(
        HTTPClient.request("GET", "/a.json?ns=stream", nil, ["Accept": "text/event-stream"]))
      _ = try stream.head()
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":0}")
      for client in [socket, polls] as [any WireClient] {
        _ = try client("q", "{\"p\":\"/a\",\"h\":\"\"}")
      }
      let kept = namespaces.all.filter { ["socket", "polls", "stream"].contains($0.name) }
      #expect(kept.count == 3)
      for number in 0..<20 {
        #expect(try http("PUT", "/n.json?ns=n\(number)", "\(number)").status == 200)
      }
      for namespace in kept {
        #expect(namespaces.open(namespace.name)?.namespace === namespace)
        #expect(try http("PUT", "/a.json?ns=\(namespace.name)", "1").status == 200)
      }
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":1}")
      #expect(try socket.push() == "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":1}")
      #expect(try polls.push() == "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":1}")
      let last = try WebSocketClient(port: port, "/.ws?v=5&ns=last")
      let refused = try http("PUT", "/n.json?ns=one-more", "1")
      #expect(refused.status == 503)
      #expect(refused.body.contains("4 databases in use"))
      #expect(try http("GET", "/a.json?ns=socket").body == "1")
      // Its end makes room.
      #expect(try last("o", "{\"p\":\"/left\",\"d\":true}") == [ok])
      try last.frame(0x8, [3, 232])
      while try http("PUT", "/n.json?ns=one-more", "1").status == 503 {}
      #expect(try http("GET", "/left.json?ns=last").body == "true")
    }
  }

  @Test("a session that waits for room gets it when another one ends")
  func waiting() async throws {
    let folder = try TemporaryFolder()
    try await serving(OpeningNamespaces.Limits(openCount: 1), in: folder) { _, port in
      let http = try HTTPClient(port: port)
      var refusedCount = 0
      for round in 0..<40 {
        // The end of a session is seen after the client has ended it.
        let socket = try WebSocketClient(port: port, "/.ws?v=5&ns=a")
        try socket.frame(0x8, [3, 232])
        // It waits for a second, which a busy machine may stand still for.
        var status = 503
        for attempt in 0..<30 where status == 503 {
          if attempt == 1 { refusedCount += 1 }
          status = try http("PUT", "/n.json?ns=b", "\(round)").status
        }
        #expect(status == 200)
      }
      // One that does not wait refuses most of them.
      #expect(refusedCount < 10)
    }
  }

  /// What opening gives, again and again for a minute as long as the database is locked.
  private func unlocked(_ open: () async throws -> Database) async throws -> Database {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      do {
        return try await open()
      } catch let error as DatabaseError where error.code == .locked && .now < deadline {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
  }

  @Test("what was not used for a long time is closed, but for what is in use")
  func idle() async throws {
    let folder = try TemporaryFolder()
    let limits = OpeningNamespaces.Limits(idleTime: .zero)
    try await serving(limits, in: folder) { namespaces, port in
      let http = try HTTPClient(port: port)
      let socket = try WebSocketClient(port: port, "/.ws?v=5&ns=used")
      _ = try http("PUT", "/n.json?ns=idle", "1")
      while namespaces.open("idle") != nil {
        namespaces.closeIdle()
        await Task.yield()
      }
      #expect(namespaces.all.map(\.name) == ["used"])
      #expect(try socket("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
      // A program beside the server gets at what is closed, once it is: the server closes what is idle, too.
      let database = try await unlocked { try await Database.open(at: folder.path + "/data/idle") }
      try await database.close()
      #expect(try http("GET", "/n.json?ns=idle").body == "1")
    }
  }

  @Test("what is in memory alone is closed only if it holds nothing")
  func memory() async throws {
    let namespaces = OpeningNamespaces(
      inMemory: DatabaseOptions(), default: "default",
      limits: OpeningNamespaces.Limits(openCount: 3, idleTime: .zero))
    try await serving(namespaces) { namespaces, port in
      let http = try HTTPClient(port: port)
      for name in ["one", "two"] { _ = try http("PUT", "/a.json?ns=\(name)", "1") }
      for number in 0..<20 {
        let target = "/a.json?ns=n\(number)"
        #expect(try http("PUT", target, "1").status == 200)
        #expect(try http("DELETE", target).status == 200)
      }
      _ = try http("PUT", "/a.json?ns=three", "1")
      #expect(try http("PUT", "/a.json?ns=four", "1").status == 503)
      namespaces.closeIdle()
      for name in ["one", "two", "three"] {
        #expect(try http("GET", "/a.json?ns=\(name)").body == "1")
      }
    }
  }

  @Test("requests make so many, and the one without a name; those that are there are opened")
  func count() async throws {
    let folder = try TemporaryFolder()
    for name in ["x", "y"] {
      let database = try await Database.open(at: "\(folder.path)/data/\(name)")
      try await database.close()
    }
    let limits = OpeningNamespaces.Limits(openCount: 2, count: 3)
    try await serving(limits, in: folder) { namespaces, port in
      let http = try HTTPClient(port: port)
      for name in ["a", "x", "y", "a"] {
        #expect(try http("PUT", "/n.json?ns=\(name)", "1").status == 200)
      }
      let refused = try http("PUT", "/n.json?ns=b", "1")
      #expect(refused.status == 503)
      #expect(refused.body.contains("3 databases"))
      let upgrade = [
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      ]
      #expect(try HTTPClient(port: port)("GET", "/.ws?v=5&ns=b", nil, upgrade).status == 503)
      #expect(try http("GET", "/n.json?ns=b").body == "null")
      #expect(try http("PUT", "/n.json", "1").status == 200)
      #expect(namespaces.names == ["a", "default", "x", "y"])
    }
  }

  @Test("rules for all databases also decide about one that is not there, and no reading makes it")
  func rulesForNothing() async throws {
    let folder = try TemporaryFolder()
    let namespaces = OpeningNamespaces(
      in: folder.path + "/data", default: "default", options: DatabaseOptions())
    var options = DatabaseServerOptions.patient
    options.rules = try Rules("{\"rules\":{\"open\":{\".read\":true}}}")
    try await serving(namespaces, options: options) { namespaces, port in
      let http = try HTTPClient(port: port)
      let stream = ["Accept": "text/event-stream"]
      for parameters in ["", "&shallow=true", "&format=export", "&auth_variable_override=null"] {
        let owner = parameters.contains("auth") ? ["Authorization": "Bearer owner"] : [:]
        #expect(try http("GET", "/a.json?ns=other\(parameters)", nil, owner).status == 401)
        let answer = try http("GET", "/open.json?ns=other\(parameters)", nil, owner)
        #expect(answer.status == 200 && answer.body == "null", "\(parameters)")
      }
      #expect(try http("HEAD", "/a.json?ns=other").status == 401)
      #expect(try http("GET", "/a.json?ns=other", nil, stream).status == 401)
      #expect(try http("GET", "/open.json?ns=other&orderBy=\"x\"").status == 400)
      #expect(
        try http("GET", "/a.json?ns=other", nil, ["Authorization": "Bearer owner"]).body == "null")
      #expect(!namespaces.names.contains("other"))
    }
  }

  @Test("a database stays open while last writes of sessions wait for room on the disk")
  func waitingLastWrites() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path
    let disk = SimulatedDisk(seed: 1)
    let namespaces = OpeningNamespaces(
      default: "default", limits: OpeningNamespaces.Limits(idleTime: .zero)
    ) {
      []
    } opener: {
      try Database.open(at: "\(path)/\($0)", on: disk)
    }
    try await serving(namespaces) { namespaces, port in
      let http = try HTTPClient(port: port)
      let leaving = try WebSocketClient(port: port, "/.ws?v=5&ns=a")
      #expect(try leaving("o", "{\"p\":\"/left\",\"d\":true}") == [ok])
      disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
      try leaving.frame(0x8, [3, 232])
      while try !http("GET", "/.status.json").body.contains("\"waitingLastWrites\":1") {
        await Task.yield()
      }
      for _ in 0..<20 { namespaces.closeIdle() }
      #expect(namespaces.all.map(\.name) == ["a"])
      disk.removeFaults()
      while namespaces.all.count > 0 {
        namespaces.closeIdle()
        await Task.yield()
      }
      let later = try WebSocketClient(port: port, "/.ws?v=5&ns=a")
      #expect(try later("g", "{\"p\":\"/left\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":true}"])
    }
  }
}
