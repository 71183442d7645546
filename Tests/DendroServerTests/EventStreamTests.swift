import Dendro
import DendroServer
import DendroTestSupport
import Dispatch
import Synchronization
import Testing

@Suite("serving: event streams")
struct EventStreamTests {
  @Test("the dialogue of a stream")
  func dialogue() async throws {
    try await serving { served in
      let http = try served.client()
      _ = try http("PUT", "/room.json", "{\"n\":1}")
      let stream = try served.stream("/room.json")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":{\"n\":1}}")
      _ = try http("PUT", "/room/n.json", "2")
      #expect(try stream.event() == "put {\"path\":\"/n\",\"data\":2}")
      _ = try http("PUT", "/room/n.json", "2")
      _ = try http("PUT", "/other.json", "2")
      _ = try http("PATCH", "/room.json", "{\"n\":3,\"m/x\":true}")
      #expect(try stream.event() == "patch {\"path\":\"/\",\"data\":{\"m/x\":true,\"n\":3}}")
      _ = try http("DELETE", "/room.json")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}")
      try await served.database.reference(withPath: "room/k").setValue("direct")
      #expect(try stream.event() == "put {\"path\":\"/k\",\"data\":\"direct\"}")
    }
  }

  @Test("a client that has fallen behind still learns why its stream ends")
  func lastWord() async throws {
    final class Gate: Authorizer {
      let isOpen = Atomic<Bool>(true)
      func decide(_ request: AuthorizationRequest) -> AuthorizationVerdict {
        isOpen.load(ordering: .relaxed) ? .allow : .deny
      }
    }
    let gate = Gate()
    try await serving({
      $0.authorizer = gate
      $0.backlogByteLimit = 16
    }) { served in
      let stream = try served.stream("/a.json", receiveBuffer: 4096)
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}")
      let text = String(repeating: "x", count: 8 << 20)
      // More than the sockets take: it is being sent. One event waits behind it.
      try await served.database.reference(withPath: "a").setValue(["b": text, "c": text])
      try await served.database.reference(withPath: "a/n").setValue(1)
      gate.isOpen.store(false, ordering: .relaxed)
      served.server.reauthorize()
      var last = ""
      while let event = try? stream.event() { last = event }
      #expect(last == "cancel \"Permission denied\"", "\(last.prefix(60))")
    }
  }

  @Test("the events of a write come before its answer", arguments: [1, 8])
  func order(clients: Int) async throws {
    try await serving { served in
      let streams = try (0..<clients).map { _ in try served.stream("/a.json") }
      for stream in streams { #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}") }
      let http = try served.client()
      for number in 1...200 { #expect(try http("PUT", "/a.json", "\(number)").status == 200) }
      for stream in streams {
        for number in 1...200 {
          #expect(try stream.event() == "put {\"path\":\"/\",\"data\":\(number)}")
        }
      }
    }
  }

  @Test("a query shows its window, and what leaves it")
  func queries() async throws {
    try await serving { served in
      let http = try served.client()
      _ = try http("PUT", "/s.json", "{\"a\":1,\"b\":2,\"c\":3}")
      let stream = try served.stream("/s.json?orderBy=%22$value%22&limitToLast=2")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":{\"b\":2,\"c\":3}}")
      _ = try http("PUT", "/s/d.json", "9")
      #expect(try stream.event() == "patch {\"path\":\"/\",\"data\":{\"b\":null,\"d\":9}}")
      _ = try http("DELETE", "/s/c.json")
      #expect(try stream.event() == "patch {\"path\":\"/\",\"data\":{\"b\":2,\"c\":null}}")
      _ = try http("PUT", "/s/a.json", "0")
      _ = try http("PUT", "/s/d.json", "10")
      #expect(try stream.event() == "put {\"path\":\"/d\",\"data\":10}")
      _ = try http("DELETE", "/s.json")
      #expect(try stream.event() == "patch {\"path\":\"/\",\"data\":{\"b\":null,\"d\":null}}")
    }
  }

  @Test("silence is broken by keep-alives")
  func keepAlive() async throws {
    try await serving({ $0.keepAliveInterval = .milliseconds(20) }) { served in
      let stream = try served.stream("/a.json")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}")
      for _ in 0..<3 { #expect(try stream.event() == "keep-alive null") }
    }
  }

  @Test("a slow reader gets the whole value in place of what it missed, and does not delay others")
  func slowReader() async throws {
    try await serving({
      $0.backlogByteLimit = 64 << 10
      // On a machine that is slow itself, the client is silent for longer than by default.
      $0.idleTimeout = .seconds(3600)
    }) { served in
      let slow = try HTTPClient(port: served.server.port, receiveBuffer: 4096)
      try slow.send(HTTPClient.request("GET", "/a.json", nil, ["Accept": "text/event-stream"]))
      _ = try slow.head()
      let fast = try served.stream("/a/n.json")
      let http = try served.client()
      let text = String(repeating: "x", count: 20_000)
      let count = 800
      for number in 1...count {
        #expect(
          try http("PUT", "/a.json?print=silent", "{\"n\":\(number),\"t\":\"\(text)\"}").status
            == 204)
      }
      var last = ""
      repeat { last = try fast.event() } while last != "put {\"path\":\"/\",\"data\":\(count)}"
      var events = 0
      repeat {
        last = try slow.event()
        events += 1
      } while !last.hasPrefix("put {\"path\":\"/\",\"data\":{\"n\":\(count),")
      #expect(events < count)
    }
  }

  @Test("a stream is resumed after the last event that the client has")
  func resumption() async throws {
    let folder = try TemporaryFolder()
    let database = try await Database.open(at: folder.path + "/db")
    let server = try await DatabaseServer.start(serving: database)
    let served = Served(database: database, server: server)
    let http = try served.client()
    _ = try http("PUT", "/a.json", "{\"x\":1,\"y\":2}")
    let first = try served.stream("/a.json?eventIds=true")
    let event = try first.event()
    #expect(event == "id: 1\nput {\"path\":\"/\",\"data\":{\"x\":1,\"y\":2}}")
    let same = try served.stream("/a.json", ["Last-Event-ID": "1"])
    _ = try http("PUT", "/a/x.json", "5")
    #expect(try same.event() == "id: 2\nput {\"path\":\"/x\",\"data\":5}")
    let missed = try served.stream("/a.json", ["Last-Event-ID": "1"])
    #expect(try missed.event() == "id: 2\nput {\"path\":\"/x\",\"data\":5}")
    let unknown = try served.stream("/a.json", ["Last-Event-ID": "99"])
    #expect(try unknown.event() == "id: 2\nput {\"path\":\"/\",\"data\":{\"x\":5,\"y\":2}}")
    await server.stop()
    try await database.close()
  }

  @Test("what a stream may not read is refused before it begins")
  func refused() async throws {
    try await serving({ $0.authorizer = LockedAuthorizer() }) { served in
      let answer = try served.client()("GET", "/a.json", nil, ["Accept": "text/event-stream"])
      #expect(answer.status == 401)
      #expect(answer.headers["content-type"]?.hasPrefix("application/json") == true)
    }
  }

  @Test("servers that are stopped while requests come answer each or close its connection")
  func stopUnderLoad() async throws {
    for _ in 0..<10 {
      try await serving { served in
        let writers = DispatchGroup()
        for number in 0..<4 {
          // Threads of their own: the loops block, and end when the server has closed their connections.
          DispatchQueue(label: "writer").async(group: writers) {
            guard let http = try? served.client() else { return }
            while let answer = try? http("PUT", "/n\(number).json", "1", ["if-match": "x"]) {
              #expect(answer.status == 412 || answer.status == 503)
            }
          }
        }
        _ = try served.client()("GET", "/n.json")
        await served.server.stop()
        await withCheckedContinuation { continuation in
          writers.notify(queue: .global()) { continuation.resume() }
        }
      }
    }
  }

  @Test("a stopped server ends its streams, and clients that leave are forgotten")
  func stop() async throws {
    try await serving { served in
      let streams = try (0..<20).map { _ in try served.stream("/a.json") }
      for stream in streams { _ = try stream.event() }
      for _ in 0..<20 { _ = try served.stream("/b.json").event() }
      await served.server.stop()
      for stream in streams {
        // On a slow machine some were kept alive meanwhile.
        #expect(throws: HTTPClient.Ended.self) {
          while try stream.event() == "keep-alive null" {}
        }
      }
      #expect(throws: (any Error).self) { _ = try served.client()("GET", "/a.json") }
    }
  }
}
