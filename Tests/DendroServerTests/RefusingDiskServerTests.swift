import Dendro
import DendroPlatform
import DendroProtocol
import DendroServer
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

  /// The status says that writes fail, and why.
  private func expectFailing(_ served: Served, _ text: String) throws {
    let answer = try served.client()("GET", "/.status.json")
    #expect(answer.status == 503)
    #expect(answer.body.hasPrefix("{\"status\":\"failing\",\"error\":\"\(text)\",\"databases\":{"))
    #expect(answer.body.hasSuffix(",\"error\":\"\(text)\"}}}"))
    #expect(try served.client()("HEAD", "/.status.json").status == 503)
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
      try expectFailing(served, "The disk of the database is full.")
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
        served, "The disk has failed: no write until the database is opened again.")
      try expectReads(served, client, listener)
    }
    try await serving(disk, at: folder.path + "/db", writes: false) {
      served, client, _ async throws in
      #expect(try served.client()("GET", "/.json").body == acknowledged)
      #expect(try client("p", "{\"p\":\"/y\",\"d\":1}") == [ok])
    }
  }
}
