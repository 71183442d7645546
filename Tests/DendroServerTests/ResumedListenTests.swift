import Dendro
import DendroProtocol
import DendroServer
import DendroTestSupport
import DendroTree
import Testing

/// Clients that tell what they had, and after which write, and get what has changed since.
@Suite("serving: resumed listens")
struct ResumedListenTests {
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"
  /// Smaller values are sent as a whole.
  private let large = "\"" + String(repeating: "x", count: 70_000) + "\""

  /// Serves a database in a directory for the time of `body`.
  private func servingFiles(_ body: (Served) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    var options = DatabaseOptions()
    options.durability = .onRequest
    let database = try await Database.open(at: folder.path + "/db", options: options)
    try await serving(database, { _ in }, body)
  }

  /// What a listen brings: its pushes, and the last write that the answer names.
  private func listen(
    _ client: any WireClient, _ path: String, _ known: Node, since: UInt64
  ) throws -> (pushes: [String], lsn: UInt64) {
    var messages = try client(
      "q", "{\"p\":\"\(path)\",\"h\":\"\(TreeHash.hash(known))\",\"since\":\(since)}")
    let answer = messages.removeLast()
    let start = "{\"s\":\"ok\",\"d\":{\"lsn\":"
    #expect(answer.hasPrefix(start))
    return (messages, try #require(UInt64(answer.dropFirst(start.count).dropLast(2))))
  }

  private func node(_ served: Served, _ path: String) async throws -> Node {
    try await served.database.reference(withPath: path).getData().node
  }

  @Test(
    "what has changed since a write comes alone, with the hash of all",
    arguments: Transport.allCases)
  func changes(transport: Transport) async throws {
    try await servingFiles { served in
      let client = try transport.client(served)
      _ = try client("p", "{\"p\":\"/a/large\",\"d\":\(large)}")
      for number in 1..<100 {
        _ = try client("p", "{\"p\":\"/a/k\(number)\",\"d\":{\"n\":\(number),\"m\":1}}")
      }
      let known = try await node(served, "a")
      let first = try listen(client, "/a", .empty, since: 0)
      #expect(first.pushes.count == 1 && first.pushes[0].hasPrefix("\"a\":\"d\""))
      #expect(first.lsn == 100)
      _ = try client("n", "{\"p\":\"/a\"}")
      #expect(try listen(client, "/a", known, since: 100).pushes.isEmpty)
      _ = try client("n", "{\"p\":\"/a\"}")

      _ = try client("p", "{\"p\":\"/a/k7/n\",\"d\":70}")
      _ = try client("m", "{\"p\":\"/a\",\"d\":{\"k8\":null,\"k9/n\":90,\"new/x\":true}}")
      _ = try client("p", "{\"p\":\"/other\",\"d\":1}")
      _ = try client("p", "{\"p\":\"/a/k7\",\"d\":7}")
      _ = try client("p", "{\"p\":\"/a/k10/.priority\",\"d\":3}")
      let present = try await node(served, "a")
      let second = try listen(client, "/a", known, since: 100)
      #expect(
        second.pushes == [
          """
          "a":"m","b":{"p":"a","d":{"k10":{"m":1,"n":10,".priority":3},"k7":7,"k9/n":90,"new/x":true,"k8":null},\
          "h":"\(TreeHash.hash(present))"}
          """
        ])
      #expect(second.lsn == 105)
      // It goes on as any listen.
      #expect(
        try client("p", "{\"p\":\"/a/k1\",\"d\":1}") == [
          "\"a\":\"d\",\"b\":{\"p\":\"a/k1\",\"d\":1}", ok,
        ])
      #expect(try client("lsn", "{}") == ["{\"s\":\"ok\",\"d\":{\"lsn\":106}}"])
    }
  }

  @Test("all of it comes if the log does not tell what has changed")
  func whole() async throws {
    try await servingFiles { served in
      let client = try WebSocketClient(served)
      _ = try client("p", "{\"p\":\"/a/b\",\"d\":{\"x\":1,\"y\":\(large)}}")
      let known = try await node(served, "a/b")
      func isWhole(_ path: String, since: UInt64) throws -> Bool {
        let pushes = try listen(client, path, known, since: since).pushes
        _ = try client("n", "{\"p\":\"\(path)\"}")
        return pushes.count == 1 && pushes[0].hasPrefix("\"a\":\"d\"")
      }
      _ = try client("p", "{\"p\":\"/a/b/x\",\"d\":3}")
      #expect(try !isWhole("/a/b", since: 1))
      // It does not know when it was right; it says what cannot be; it is wrong about what it has.
      #expect(try isWhole("/a/b", since: 0))
      #expect(try isWhole("/a/b", since: 1_000))
      #expect(try isWhole("/a/b", since: 2))
      // All of the location has changed.
      _ = try client("p", "{\"p\":\"/a\",\"d\":{\"b\":{\"x\":4,\"y\":\(large)}}}")
      #expect(try isWhole("/a/b", since: 1))
      // Too many places have changed to be sent one by one.
      _ = try client("p", "{\"p\":\"/d/large\",\"d\":\(large)}")
      let lsn = try listen(client, "/c", .empty, since: 0).lsn
      for start in stride(from: 0, to: 10_100, by: 100) {
        let members = (start..<start + 100).map { "\"k\($0)\":1" }.joined(separator: ",")
        _ = try client("m", "{\"p\":\"/d\",\"d\":{\(members)}}")
      }
      #expect(try isWhole("/d", since: lsn))
      // Checkpoints take the log away.
      let oldest = try listen(client, "/c", .empty, since: 0).lsn
      _ = try client("p", "{\"p\":\"/a/b/x\",\"d\":5}")
      #expect(try !isWhole("/a/b", since: oldest))
      for number in 0..<3 {
        try await served.database.checkpoint()
        _ = try client("p", "{\"p\":\"/a/b/x\",\"d\":\(number)}")
      }
      #expect(try isWhole("/a/b", since: oldest))
    }
    // There is no log.
    try await serving { served in
      let client = try WebSocketClient(served)
      _ = try client("p", "{\"p\":\"/a\",\"d\":{\"x\":1,\"y\":\(large)}}")
      let known = try await node(served, "a")
      _ = try client("p", "{\"p\":\"/a/x\",\"d\":3}")
      #expect(try listen(client, "/a", known, since: 1).pushes[0].hasPrefix("\"a\":\"d\""))
    }
  }

  @Test("a client that does not say since when gets nothing that other servers do not send")
  func unasked() async throws {
    try await servingFiles { served in
      let client = try WebSocketClient(served)
      _ = try client("p", "{\"p\":\"/a\",\"d\":{\"x\":1,\"y\":\(large)}}")
      let hash = TreeHash.hash(try await node(served, "a"))
      _ = try client("p", "{\"p\":\"/a/x\",\"d\":2}")
      #expect(
        try client("q", "{\"p\":\"/a\",\"h\":\"\(hash)\"}") == [
          "\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":{\"x\":2,\"y\":\(large)}}",
          "{\"s\":\"ok\",\"d\":{}}",
        ])
    }
  }

  @Test("only clients that may read everything learn the names of what was removed")
  func removed() async throws {
    try await servingFiles { served in
      let http = try served.client()
      let rules = "{\"rules\":{\"a\":{\".read\":true,\".write\":true}}}"
      let owner = ["Authorization": "Bearer owner"]
      #expect(try http("PUT", "/.settings/rules.json", rules, owner).status == 200)
      let client = try WebSocketClient(served)
      let administrator = try WebSocketClient(served)
      _ = try administrator("gauth", "{\"cred\":\"owner\"}")
      _ = try client("p", "{\"p\":\"/a\",\"d\":{\"x\":1,\"y\":\(large)}}")
      let known = try await node(served, "a")
      let lsn = try listen(client, "/a/none", .empty, since: 0).lsn
      _ = try client("p", "{\"p\":\"/a/x\",\"d\":2}")
      func isWhole(_ client: WebSocketClient) throws -> Bool {
        let push = try #require(try listen(client, "/a", known, since: lsn).pushes.first)
        _ = try client("n", "{\"p\":\"/a\"}")
        return push.hasPrefix("\"a\":\"d\"")
      }
      #expect(try !isWhole(client) && !isWhole(administrator))
      _ = try client("p", "{\"p\":\"/a/secret\",\"d\":1}")
      _ = try client("p", "{\"p\":\"/a/secret\",\"d\":null}")
      #expect(try isWhole(client) && !isWhole(administrator))
    }
  }

  @Test("a number of a write that is none is refused", arguments: ["-1", "\"x\"", "1.5", "{}"])
  func invalid(since: String) async throws {
    try await serving { served in
      let client = try WebSocketClient(served)
      #expect(
        try client("q", "{\"p\":\"/a\",\"h\":\"\",\"since\":\(since)}")
          == ["{\"s\":\"failure\",\"d\":\"Invalid since: it is no number of a write\"}"])
    }
  }

  @Test(
    "while others write, what a client makes of what it gets is what the server has",
    arguments: 1...4 as ClosedRange<UInt64>)
  func racing(seed: UInt64) async throws {
    try await servingFiles { served in
      var generator = SeededGenerator(seed: seed)
      let writer = try WebSocketClient(served)
      let client = try WebSocketClient(served)
      _ = try writer("p", "{\"p\":\"/a/large\",\"d\":\(large)}")
      var known = Node.empty
      var lsn: UInt64 = 0
      var renewedCount = 0
      for round in 0..<60 {
        for _ in 0..<generator.below(20) {
          let path = "/a/\(generator.below(8))/\(generator.below(8))"
          switch generator.below(4) {
          case 0: try writer.request("p", "{\"p\":\"\(path)\",\"d\":null}")
          case 1: try writer.request("p", "{\"p\":\"\(path)\",\"d\":{\"x\":\(round),\"y\":[1,2]}}")
          case 2: try writer.request("m", "{\"p\":\"\(path)\",\"d\":{\"x/z\":\(round),\"y\":null}}")
          default: try writer.request("p", "{\"p\":\"\(path)/.priority\",\"d\":\(round)}")
          }
        }
        let listened = try listen(client, "/a", known, since: lsn)
        var messages = listened.pushes
        renewedCount += messages.count { $0.contains("\"h\":") }
        lsn = listened.lsn
        _ = try writer("s", "{}")
        // Behind what was pushed for the listen.
        messages += try client("s", "{}").dropLast()
        messages += try client("n", "{\"p\":\"/a\"}").dropLast()
        for message in messages {
          let body = try #require(JSONMembers(Array("{\(message)}".utf8)[...])?.object("b"))
          try apply(body, isUpdate: message.hasPrefix("\"a\":\"m\""), to: &known)
        }
      }
      #expect(renewedCount > 0, "seed \(seed)")
      let last = try listen(client, "/a", known, since: lsn)
      for message in last.pushes {
        let body = try #require(JSONMembers(Array("{\(message)}".utf8)[...])?.object("b"))
        try apply(body, isUpdate: message.hasPrefix("\"a\":\"m\""), to: &known)
      }
      let present = try await node(served, "a")
      #expect(known == present, "seed \(seed)")
    }
  }

  /// Changes what is known of `/a` as a push says.
  private func apply(_ body: JSONMembers, isUpdate: Bool, to known: inout Node) throws {
    let place = try Path(parsing: "/" + (body.string("p") ?? ""))
    let path = try #require(place.relative(to: Path(parsing: "/a")))
    let data = try #require(body["d"])
    guard isUpdate else {
      let node = try data.withUnsafeBytes { try JSONParser.parse($0, depth: 0) }
      return known.graft(node, at: path)
    }
    try update(data, at: path, in: &known)
    if let hash = body.string("h") { #expect(TreeHash.hash(known) == hash) }
    if let later = body["then"] { try update(later, at: path, in: &known) }
  }

  private func update(_ data: ArraySlice<UInt8>, at path: Path, in known: inout Node) throws {
    try data.withUnsafeBytes { data in
      for entry in try JSONParser.parseEntries(data, depth: 0) {
        switch entry.action {
        case .set(let node): known.graft(node, at: path.appending(entry.path))
        case .remove: known.graft(.empty, at: path.appending(entry.path))
        case .increment, .setPriority: Issue.record("no server pushes that")
        }
      }
    }
  }
}
