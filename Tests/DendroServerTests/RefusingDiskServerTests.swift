import Dendro
import DendroPlatform
import DendroProtocol
@testable import DendroServer
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

/// What clients of a server see when the disk of its database refuses.
@Suite("serving: a disk that refuses")
struct RefusingDiskServerTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  private let acknowledged = "{\"a\":1,\"b\":{\"c\":2}}"

  /// Serves a database on the disk, into which two clients have written something, and which one listens to.
  private func serving(
    _ disk: SimulatedDisk, at path: String, writes: Bool = true,
    _ body: (Served, WebSocketClient, ViewingClient) async throws -> Void
  ) async throws {
    let database = try Database.open(at: path, on: disk)
    let server = try await DatabaseServer.start(serving: database)
    let served = Served(database: database, server: server)
    do {
      let client = try WebSocketClient(served)
      if writes {
        #expect(try served.client()("PUT", "/a.json", "1").status == 200)
        #expect(try client("p", "{\"p\":\"/b\",\"d\":{\"c\":2}}") == [ok])
      }
      let listener = try ViewingClient(served)
      try listener.listen("L", at: .root, "{}")
      try await body(served, client, listener)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
    try? await database.close()
  }

  /// Every kind of write by both ways.
  private func expectRefusals(
    _ served: Served, _ client: WebSocketClient, _ text: String
  ) throws {
    let http = try served.client()
    for (method, target, body) in [
      ("PUT", "/a.json", "9"), ("POST", "/list.json", "9"),
      ("PATCH", "/.json", "{\"a\":9,\"d\":9}"),
      ("DELETE", "/b.json", nil),
    ] as [(String, String, String?)] {
      let answer = try http(method, target, body)
      #expect(answer.status == 503, "\(method)")
      #expect(answer.body.contains(text), "\(method)")
    }
    let conditional = try http("PUT", "/new.json", "9", ["if-match": "null_etag"])
    #expect(conditional.status == 503)
    for (action, body) in [
      ("p", "{\"p\":\"/a\",\"d\":9}"), ("m", "{\"p\":\"/\",\"d\":{\"a\":9,\"d\":9}}"),
      ("p", "{\"p\":\"/b\",\"d\":null}"), ("p", "{\"p\":\"/new\",\"d\":9,\"h\":\"\"}"),
    ] {
      #expect(try client(action, body) == ["{\"s\":\"unavailable\",\"d\":\"\(text)\"}"])
    }
  }

  /// The status says that writes fail, and why, and the figures count it once.
  private func expectFailing(
    _ served: Served, _ text: String, cause: String, kind: String
  ) throws {
    let answer = try served.client()("GET", "/.status.json")
    #expect(answer.status == 503)
    #expect(answer.body.hasPrefix("{\"status\":\"failing\",\"error\":\"\(text)\",\"databases\":{"))
    #expect(answer.body.contains(",\"error\":\"\(cause)"), "\(answer.body)")
    #expect(try served.client()("HEAD", "/.status.json").status == 503)
    let figures = try served.client()("GET", "/.metrics").body
    let failures = figures.split(separator: "\n").filter { line in
      line.hasPrefix("dendro_failures_total{") && !line.hasSuffix(" 0")
    }
    #expect(failures == ["dendro_failures_total{kind=\"\(kind)\"} 1"])
  }

  /// What was acknowledged is read by all ways, and listeners have ended with it.
  private func expectReads(
    _ served: Served, _ client: WebSocketClient, _ listener: ViewingClient
  ) throws {
    #expect(try served.client()("GET", "/.json").body == acknowledged)
    #expect(
      try client("g", "{\"p\":\"/\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":\(acknowledged)}"])
    #expect(
      try served.stream("/.json").event() == "put {\"path\":\"/\",\"data\":\(acknowledged)}")
    #expect(
      try WebSocketClient(served)("q", "{\"p\":\"/b\",\"h\":\"\"}").first
        == "\"a\":\"d\",\"b\":{\"p\":\"b\",\"d\":{\"c\":2}}")
    _ = try listener.take()
    let expected = try JSONParser.parse(acknowledged)
    #expect(listener.shown(at: .root) == expected)
  }

  @Test("a full disk: writes are refused, reads go on, and it works again once there is room")
  func full() async throws {
    let folder = try TemporaryFolder()
    let disk = SimulatedDisk(seed: 1)
    try await serving(disk, at: folder.path + "/db") { served, client, listener in
      disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
      let http = try served.client()
      #expect(try http("GET", "/.status.json").status == 200)
      try expectRefusals(served, client, "The disk of the database is full.")
      try expectFailing(
        served, "The disk of the database is full.", cause: "the disk is full: ", kind: "disk_full")
      try expectReads(served, client, listener)
      // Every refused write makes the database look for room, and so does who asks for the status.
      disk.removeFaults()
      while try http("GET", "/.status.json").status != 200 { await Task.yield() }
      while try http("PUT", "/z.json", "\"there\"").status != 200 { await Task.yield() }
      #expect(try client("p", "{\"p\":\"/y\",\"d\":1}") == [ok])
      _ = try listener.take()
      let expected = try JSONParser.parse("{\"a\":1,\"b\":{\"c\":2},\"y\":1,\"z\":\"there\"}")
      #expect(listener.shown(at: .root) == expected)
    }
    try await serving(disk, at: folder.path + "/db", writes: false) { served, _, _ async throws in
      #expect(
        try served.client()("GET", "/.json").body
          == "{\"a\":1,\"b\":{\"c\":2},\"y\":1,\"z\":\"there\"}")
    }
  }

  @Test("what a client has registered for its end is written after all, by the next serving")
  func leavingWithoutRoom() async throws {
    let folder = try TemporaryFolder()
    let disk = SimulatedDisk(seed: 2)
    try await serving(disk, at: folder.path + "/db") { served, client, listener in
      let leaving = try WebSocketClient(served)
      #expect(try leaving("o", "{\"p\":\"/left\",\"d\":true}") == [ok])
      disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
      // The next connection is served after the end of the one before it.
      let next = try WebSocketClient(served, "/.ws?v=5&ns=app&ls=\(leaving.session)")
      #expect(throws: HTTPClient.Ended.self) { _ = try leaving.message() }
      #expect(
        try next("p", "{\"p\":\"/a\",\"d\":9}")
          == ["{\"s\":\"unavailable\",\"d\":\"The disk of the database is full.\"}"])
      try expectReads(served, client, listener)
    }
    disk.removeFaults()
    try await serving(disk, at: folder.path + "/db", writes: false) { served, _, _ async throws in
      #expect(
        try served.client()("GET", "/.json").body == "{\"a\":1,\"b\":{\"c\":2},\"left\":true}")
    }
  }

  @Test("what a serving finds of the one before it, and the disk refuses, is reported once")
  func refusedLeftover() async throws {
    let folder = try TemporaryFolder()
    let disk = SimulatedDisk(seed: 6)
    try await serving(disk, at: folder.path + "/db") { served, client, _ in
      let leaving = try WebSocketClient(served)
      #expect(try leaving("o", "{\"p\":\"/left\",\"d\":true}") == [ok])
      disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
      _ = try WebSocketClient(served, "/.ws?v=5&ns=app&ls=\(leaving.session)")
    }
    // There is room for the opening, and none for what is left.
    disk.removeFaults()
    let (reported, continuation) = AsyncStream<DatabaseError>.makeStream()
    var options = DatabaseOptions()
    options.errorHandler = { continuation.yield($0) }
    let database = try Database.open(at: folder.path + "/db", on: disk, options: options)
    disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
    let server = try await DatabaseServer.start(serving: database)
    var errors = reported.makeAsyncIterator()
    #expect(await errors.next()?.code == .diskFull)
    let client = try Served(database: database, server: server).client()
    while try !client("GET", "/.status.json").body.contains("\"waitingLastWrites\":1") {
      await Task.yield()
    }
    disk.removeFaults()
    while try client("GET", "/left.json").body != "true" { await Task.yield() }
    await server.stop()
    try await database.close()
    continuation.finish()
    #expect(await errors.next() == nil)
  }

  @Test("what the disk has refused of a client's registrations is not done at its end")
  func refusedRegistrations() async throws {
    let folder = try TemporaryFolder()
    let disk = SimulatedDisk(seed: 4)
    try await serving(disk, at: folder.path + "/db", writes: false) { served, client, _ in
      let leaving = try WebSocketClient(served)
      for (path, value) in [("canceled", "1"), ("replaced", "1"), ("both", "{\"p\":1,\"q\":1}")] {
        #expect(try leaving("o", "{\"p\":\"/\(path)\",\"d\":\(value)}") == [ok])
      }
      disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
      let refused =
        "{\"s\":\"unavailable\",\"d\":\"The operation could not be kept on the disk.\"}"
      #expect(try leaving("oc", "{\"p\":\"/canceled\",\"d\":null}") == [refused])
      #expect(try leaving("o", "{\"p\":\"/replaced\",\"d\":2}") == [refused])
      #expect(try leaving("o", "{\"p\":\"/new\",\"d\":1}") == [refused])
      #expect(try leaving("oc", "{\"p\":\"/both/p\",\"d\":null}") == [refused])
      disk.removeFaults()
      while try served.client()("GET", "/.status.json").status != 200 { await Task.yield() }
      // What comes later counts.
      #expect(try leaving("o", "{\"p\":\"/later\",\"d\":1}") == [ok])
      let next = try WebSocketClient(served, "/.ws?v=5&ns=app&ls=\(leaving.session)")
      #expect(throws: HTTPClient.Ended.self) { _ = try leaving.message() }
      #expect(
        try next("g", "{\"p\":\"/\",\"q\":{}}") == [
          "{\"s\":\"ok\",\"d\":{\"both\":{\"p\":1,\"q\":1},\"canceled\":1,\"later\":1,\"replaced\":1}}"
        ])
    }
  }

  @Test(
    "the last write of a client is made once there is room again, and the status says that it waits"
  )
  func lastWriteAgain() async throws {
    let folder = try TemporaryFolder()
    let disk = SimulatedDisk(seed: 5)
    try await serving(disk, at: folder.path + "/db") { served, client, _ in
      let leaving = try WebSocketClient(served)
      #expect(
        try leaving("o", "{\"p\":\"/left\",\"d\":{\".sv\":{\"increment\":1}}}") == [ok])
      disk.inject(DiskFault(.error(ENOSPC), of: [.write, .preallocate], at: 1, isPermanent: true))
      _ = try WebSocketClient(served, "/.ws?v=5&ns=app&ls=\(leaving.session)")
      let http = try served.client()
      // A retry that is under way is not counted as waiting.
      while try !http("GET", "/.status.json").body.contains("\"waitingLastWrites\":1") {
        await Task.yield()
      }
      disk.removeFaults()
      while try http("GET", "/left.json").body != "1" { await Task.yield() }
      #expect(try !http("GET", "/.status.json").body.contains("waitingLastWrites"))
    }
    try await serving(disk, at: folder.path + "/db", writes: false) { served, _, _ async throws in
      #expect(try served.client()("GET", "/left.json").body == "1")
    }
  }

  @Test("what is left in a directory of namespaces is written without being asked for")
  func leftoversOfNamespaces() async throws {
    let folder = try TemporaryFolder()
    for name in ["left", "plain"] {
      let database = try await Database.open(at: "\(folder.path)/\(name)")
      try await database.reference(withPath: "n").setValue(1)
      if name == "left" {
        let journal = try #require(DisconnectJournal(try database.servedEngine()))
        var session = DisconnectJournal.Session()
        let increment = Draft(.increment(try Path(parsing: "n"), .integer(1)))
        let isKept = await withCheckedContinuation { continuation in
          journal.keep(.register(increment, by: 0), of: "session", &session, neededByteCount: 0) {
            continuation.resume(returning: $0 == nil)
          }
        }
        #expect(isKept)
      }
      try await database.close()
    }
    let namespaces = OpeningNamespaces(
      in: folder.path, default: "default", options: DatabaseOptions())
    let server = try DatabaseServer.start(namespaces, DatabaseServerOptions.patient)
    while namespaces.open("left") == nil { await Task.yield() }
    let left = try #require(namespaces.open("left"))
    while try left.namespace.root() != JSONParser.parse("{\"n\":2}") { await Task.yield() }
    #expect(namespaces.all.map(\.name) == ["left"])
    await server.stop()
  }

  @Test(
    "a failed flush: its write and all later ones are refused, and reads go on",
    arguments: [DiskFault.Pages.kept, .reverted])
  func failedFlush(pages: DiskFault.Pages) async throws {
    let folder = try TemporaryFolder()
    let disk = SimulatedDisk(seed: 3)
    try await serving(disk, at: folder.path + "/db") { served, client, listener in
      disk.inject(.failedSynchronize(at: 1, pages: pages))
      try expectRefusals(
        served, client, "The disk has failed: no write until the database is opened again.")
      try expectFailing(
        served, "The disk has failed: no write until the database is opened again.",
        cause: "writes are refused until the database is reopened: ", kind: "disk")
      try expectReads(served, client, listener)
    }
    try await serving(disk, at: folder.path + "/db", writes: false) {
      served, client, _ async throws in
      #expect(try served.client()("GET", "/.json").body == acknowledged)
      #expect(try client("p", "{\"p\":\"/y\",\"d\":1}") == [ok])
    }
  }
}
