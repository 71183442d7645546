import DendroPlatform
import DendroTestSupport
import Foundation
import Testing

/// Clients of servers that do not lead: they notice nothing of it.
@Suite(
  "serving: clients of a cluster",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterClientTests {
  private let cluster: ClusterServers
  private let ok = "{\"s\":\"ok\",\"d\":\"\"}"

  init() throws { cluster = try ClusterServers() }

  private func http(_ server: ServerProcess) throws -> HTTPClient {
    try HTTPClient(port: server.port)
  }

  private func socket(
    _ server: ServerProcess, after session: String? = nil
  ) throws -> WebSocketClient {
    let last = session.map { "&ls=\($0)" } ?? ""
    return try WebSocketClient(port: server.port, "/.ws?v=5&ns=default\(last)")
  }

  private func get(_ server: ServerProcess, _ target: String) throws -> String {
    try http(server)("GET", target).body
  }

  // MARK: Reading what was seen elsewhere

  @Test("a reading at any server shows the write that it names, or says that it does not")
  func atLeast() async throws {
    let servers = try ["a", "b", "c"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    for number in 1...60 {
      let writer = number % 3 == 0 ? followers[0] : leader
      let written = try http(writer)("PUT", "/a.json", "\(number)")
      let lsn = try #require(written.headers["x-dendro-lsn"].flatMap { UInt64($0) })
      #expect(lsn >= number)
      for reader in servers {
        let read = try http(reader)("GET", "/a.json?atLeast=\(lsn)")
        #expect(read.body == "\(number)")
        let shown = try #require(read.headers["x-dendro-lsn"].flatMap { UInt64($0) })
        #expect(shown >= lsn)
      }
    }
    // An answer that is made on another thread says it once as well.
    let text = "\"\(String(repeating: "x", count: 40_000))\""
    let written = try http(followers[0])("PUT", "/a.json", text)
    let lsn = try #require(written.headers["x-dendro-lsn"].flatMap { UInt64($0) })
    for reader in servers {
      let read = try http(reader)("GET", "/a.json?atLeast=\(lsn)")
      #expect(read.body == text)
      #expect(read.headers["x-dendro-lsn"] == "\(lsn)")
    }
    // A browser's page may read it.
    let exposed = try http(leader)("GET", "/a.json").headers["access-control-expose-headers"]
    #expect(exposed?.contains("X-Dendro-LSN") == true)
    let early = try http(followers[1])("GET", "/a.json?atLeast=1000000&timeout=50ms")
    #expect(early.status == 400)
    let late = try http(followers[1])("GET", "/a.json?atLeast=1000000")
    #expect(late.status == 504)
    #expect(late.body.contains("does not show write 1000000 yet"), "\(late.body)")
    #expect(late.headers["x-dendro-lsn"] == nil)
  }

  // MARK: Writes

  @Test("a follower takes all writes of REST, and shows them when it answers")
  func rest() async throws {
    let servers = try ["a", "b"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    let follower = try #require(followers.first)
    let http = try http(follower)
    #expect(try http("PUT", "/a.json", "{\"b\":1}").body == "{\"b\":1}")
    #expect(try http("GET", "/a.json").body == "{\"b\":1}")
    #expect(try http("PATCH", "/a.json", "{\"c\":2,\"b\":null}").status == 200)
    #expect(try http("GET", "/a.json").body == "{\"c\":2}")
    #expect(try http("DELETE", "/a/c.json").body == "null")
    #expect(try http("GET", "/a.json").body == "null")
    let posted = try http("POST", "/list.json", "\"x\"")
    #expect(posted.status == 200 && posted.body.contains("{\"name\":\"-"))
    #expect(try http("PUT", "/p/.priority.json", "3").status == 400)
    #expect(try http("PUT", "/p.json", "1").status == 200)
    #expect(try http("PUT", "/p/.priority.json", "3").status == 200)
    #expect(try http("GET", "/p.json?format=export").body == "{\".value\":1,\".priority\":3}")
    #expect(try http("PUT", "/t.json", "{\".sv\":\"timestamp\"}").body.count == 13)

    // Its ETag has to be the one that is there.
    let tag = ["X-Firebase-ETag": "true"]
    let etag = try #require(try http("GET", "/p.json", nil, tag).headers["etag"])
    let stale = try http("PUT", "/p.json", "2", ["If-Match": "abc"])
    #expect(stale.status == 412 && stale.body == "1" && stale.headers["etag"] == etag)
    let matching = try http("PUT", "/p.json", "2", ["If-Match": etag])
    #expect(matching.status == 200 && matching.body == "2")
    #expect(try http("DELETE", "/p.json", nil, ["If-Match": etag]).status == 412)

    #expect(try http("PUT", "/a$.json", "1").status == 400)
    #expect(try http("PUT", "/a.json", "{").status == 400)
    #expect(try http("PUT", "/.settings/defaultWriteSizeLimit.json", "\"small\"").status == 401)
    let put = try http(
      "PUT", "/.settings/defaultWriteSizeLimit.json", "\"tiny\"", ClusterServers.administrator)
    #expect(put.status == 200, "\(put.body)")
    try await eventually("the leader has it too") {
      try get(leader, "/a.json") == get(follower, "/a.json")
        && self.http(leader)(
          "GET", "/.settings/defaultWriteSizeLimit.json", nil, ClusterServers.administrator
        ).body == "\"tiny\""
    }
  }

  /// What a task counts, on a thread that may block.
  private static func count(_ port: UInt16, _ number: Int) async throws -> [Int] {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            let http = try HTTPClient(port: port)
            return try (0..<number).map { _ in
              try #require(
                Int(try http("PUT", "/n.json", "{\".sv\":{\"increment\":1}}").body))
            }
          })
      }
    }
  }

  @Test("each increment is answered with the sum that it made, at whichever server")
  func sums() async throws {
    let servers = try ["a", "b", "c"].map { try cluster.start($0) }
    _ = try await ClusterServers.roles(of: servers)
    let ports = servers.map(\.port)
    let sums = try await withThrowingTaskGroup(of: [Int].self) { group in
      for client in 0..<6 { group.addTask { try await Self.count(ports[client % 3], 20) } }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(sums.sorted() == Array(1...120))
  }

  @Test("a follower takes all writes of the SDKs, in their order, and numbered ones once")
  func wire() async throws {
    let servers = try ["a", "b", "c"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    let client = try socket(followers[0])
    #expect(
      try client("q", "{\"p\":\"/a\",\"h\":\"\"}").last?.hasPrefix("{\"s\":\"ok\"") == true)
    // The event comes before the answer.
    #expect(
      try client("p", "{\"p\":\"/a\",\"d\":1}")
        == ["\"a\":\"d\",\"b\":{\"p\":\"a\",\"d\":1}", ok])
    for value in 2...100 { try client.request("p", "{\"p\":\"/a\",\"d\":\(value)}") }
    #expect(try client("m", "{\"p\":\"/\",\"d\":{\"a\":101,\"b\":1}}").last == ok)
    #expect(try get(followers[0], "/a.json") == "101")
    // A client reads what it has written before, also without waiting for the answer, at each server.
    for server in [followers[0], leader] {
      let client = try socket(server)
      try client.request("p", "{\"p\":\"/d\",\"d\":1}")
      try client.request("p", "{\"p\":\"/d\",\"d\":\"\(server.port)\"}")
      #expect(
        try client("g", "{\"p\":\"/d\",\"q\":{}}").last
          == "{\"s\":\"ok\",\"d\":\"\(server.port)\"}")
      try client.request("p", "{\"p\":\"/d\",\"d\":2}")
      let listened = try client("q", "{\"p\":\"/d\",\"h\":\"\"}")
      #expect(
        listened.filter { $0.hasPrefix("\"a\"") } == ["\"a\":\"d\",\"b\":{\"p\":\"d\",\"d\":2}"],
        "\(listened)")
    }
    // More than is on its way at once.
    for value in 1...1_000 { try client.request("p", "{\"p\":\"/e\",\"d\":\(value)}") }
    #expect(try client("g", "{\"p\":\"/e\",\"q\":{}}").last == "{\"s\":\"ok\",\"d\":1000}")
    // Only if the hash is that of what is there.
    #expect(try client("p", "{\"p\":\"/c\",\"d\":1,\"h\":\"\"}").last == ok)
    let stale = try client("p", "{\"p\":\"/c\",\"d\":2,\"h\":\"\"}").last
    #expect(stale?.contains("datastale") == true)
    #expect(
      try client("p", "{\"p\":\"/c$\",\"d\":2}").last?.hasPrefix("{\"s\":\"ok\"") == false)

    // A write with a number that comes to all servers counts once.
    let name = String(repeating: "0123456789abcdef", count: 2)
    func numbered(_ data: String, _ number: Int) -> String {
      """
      {"p":"/n","d":\(data),"n":{"c":"\(name)","i":"0000000000000001","n":\(number),"l":1}}
      """
    }
    let increment = "{\".sv\":{\"increment\":1}}"
    let clients = try (followers + [leader]).map { try socket($0) }
    for client in clients { try client.request("p", numbered(increment, 1)) }
    for client in clients {
      #expect(try client.push() == "\"r\":1,\"b\":\(ok)")
      #expect(try client("g", "{\"p\":\"/n\",\"q\":{}}") == ["{\"s\":\"ok\",\"d\":1}"])
    }
    for client in clients {
      #expect(try client("p", numbered(increment, 1)) == [ok])
      #expect(try client("p", numbered("5", 1))[0].contains("\"s\":\"failure\""))
    }
    #expect(try clients[0]("p", numbered(increment, 2)) == [ok])
    #expect(try get(followers[0], "/n.json") == "2")
  }

  @Test("the leader judges what clients of followers write, by the rules that any server has got")
  func rules() async throws {
    let servers = try ["a", "b"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    let follower = try #require(followers.first)
    let rules = """
      {"rules":{".read":true,"free":{".write":true},"own":{"$id":{".write":"auth.uid === $id"}},
      "up":{".write":true,".validate":"!data.exists() || newData.val() === data.val() + 1"}}}
      """
    let put = try http(follower)(
      "PUT", "/.settings/rules.json", rules, ClusterServers.administrator)
    #expect(put.status == 200, "\(put.body)")
    try await eventually("all have the rules") {
      try servers.allSatisfy { try self.http($0)("PUT", "/none.json", "1").status == 401 }
    }
    let http = try http(follower)
    let asAnn = "?auth_variable_override=%7B%22uid%22:%22ann%22%7D"
    #expect(try http("PUT", "/free.json", "1").status == 200)
    #expect(try http("PUT", "/own/ann.json", "1").status == 401)
    #expect(
      try http("PUT", "/own/ann.json\(asAnn)", "1", ClusterServers.administrator).status == 200)
    #expect(
      try http("PUT", "/own/bob.json\(asAnn)", "1", ClusterServers.administrator).status == 401)
    #expect(try http("PUT", "/own/bob.json", "1", ClusterServers.administrator).status == 200)
    let client = try socket(follower)
    #expect(try client("p", "{\"p\":\"/up\",\"d\":1}") == [ok])
    #expect(try client("p", "{\"p\":\"/up\",\"d\":2}") == [ok])
    #expect(try client("p", "{\"p\":\"/up\",\"d\":2}")[0].contains("permission_denied"))
    #expect(try client("p", "{\"p\":\"/own/ann\",\"d\":2}")[0].contains("permission_denied"))
    #expect(try client("o", "{\"p\":\"/own/ann\",\"d\":2}")[0].contains("permission_denied"))
    #expect(try get(leader, "/up.json") == "2")
    #expect(try get(leader, "/own.json") == "{\"ann\":1,\"bob\":1}")
  }

  // MARK: Clients that leave

  @Test(
    "what a follower's client has registered is written when it leaves, or comes to another server")
  func leaving() async throws {
    let servers = try ["a", "b", "c"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    do {
      let client = try socket(followers[0])
      #expect(try client("o", "{\"p\":\"/left\",\"d\":{\".sv\":{\"increment\":1}}}") == [ok])
      #expect(try client("om", "{\"p\":\"/gone\",\"d\":{\"x\":1}}") == [ok])
      #expect(try client("oc", "{\"p\":\"/gone\",\"d\":null}") == [ok])
    }
    try await eventually("it is written") { try get(leader, "/left.json") == "1" }
    #expect(try get(leader, "/gone.json") == "null")

    // It comes to another server, while its connection is open.
    for other in [followers[1], leader] {
      let client = try socket(followers[0])
      #expect(try client("o", "{\"p\":\"/state\",\"d\":\"offline\"}") == [ok])
      #expect(try client("p", "{\"p\":\"/state\",\"d\":\"online\"}") == [ok])
      let next = try socket(other, after: client.session)
      #expect(try next("p", "{\"p\":\"/state\",\"d\":\"online again\"}") == [ok])
      #expect(try client.closingCode() == 1000)
      #expect(try get(other, "/state.json") == "\"online again\"")
      try await eventually("the leader has it") {
        try get(leader, "/state.json") == "\"online again\""
      }
    }
    #expect(try get(leader, "/left.json") == "1")
  }

  @Test("what clients of a server that is killed had registered is written, whoever leads")
  func killed() async throws {
    let servers = try ["a", "b", "c"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    let last = try #require(followers.last)
    var clients: [WebSocketClient] = []
    for (number, server) in [followers[0], leader, last].enumerated() {
      let client = try socket(server)
      let increment = "{\".sv\":{\"increment\":1}}"
      #expect(try client("o", "{\"p\":\"/\(number)\",\"d\":\(increment)}") == [ok])
      clients.append(client)
    }
    followers[0].kill()
    try await eventually("of a follower") { try get(last, "/0.json") == "1" }
    leader.kill()
    try await eventually("of the leader") { try get(last, "/1.json") == "1" }
    #expect(try get(last, "/2.json") == "null")
    #expect(try clients[2]("p", "{\"p\":\"/3\",\"d\":1}") == [ok])
    clients.removeAll()
    try await eventually("of one that leads now") { try get(last, "/2.json") == "1" }
    #expect(
      try get(last, "/.json") == "{\"0\":1,\"1\":1,\"2\":1,\"3\":1}" || get(last, "/0.json") == "1")
  }

  @Test("a server that was taken for gone ends the sessions whose last writes others have made")
  func stopped() async throws {
    let servers = try ["a", "b"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    let follower = try #require(followers.first)
    let client = try socket(follower)
    let other = try socket(follower)
    #expect(try client("o", "{\"p\":\"/left\",\"d\":{\".sv\":{\"increment\":1}}}") == [ok])
    follower.freeze(true)
    try await eventually("it is written") { try get(leader, "/left.json") == "1" }
    follower.freeze(false)
    #expect(try client.closingCode() == 1000)
    // One that had registered nothing goes on.
    #expect(try other("p", "{\"p\":\"/a\",\"d\":1}") == [ok])
    #expect(try get(follower, "/left.json") == "1")
  }

  @Test("a server that takes no part any more ends the sessions whose last writes others make")
  func lostDirectory() async throws {
    let servers = try ["a", "b"].map { try cluster.start($0) }
    let (leader, followers) = try await ClusterServers.roles(of: servers)
    let follower = try #require(followers.first)
    let client = try socket(follower)
    #expect(try client("o", "{\"p\":\"/left\",\"d\":{\".sv\":{\"increment\":1}}}") == [ok])
    try FileManager.default.removeItem(atPath: follower.directory)
    // Its copy cannot be written.
    #expect(try http(leader)("PUT", "/a.json", "1").status == 200)
    #expect(try client.closingCode() == 1000)
    try await eventually("it is written") { try get(leader, "/left.json") == "1" }
    let status = try get(follower, "/.leader")
    #expect(
      status == "{\"role\":\"stopped\",\"takesWrites\":false,\"leader\":null}\n", "\(status)")
    #expect(try http(follower)("PUT", "/a.json", "2").status == 503)
    #expect(try get(leader, "/a.json") == "1")
  }
}
