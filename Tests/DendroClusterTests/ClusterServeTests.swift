import DendroPlatform
import DendroTestSupport
import Dispatch
import Foundation
import Testing

/// `dendro serve --cluster` as processes, over a PostgreSQL.
@Suite("dendro serve --cluster", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterServeTests {
  private let postgres: PostgresServer
  private let folder: TemporaryFolder

  init() throws {
    postgres = try PostgresServer()
    folder = try TemporaryFolder()
  }

  private func start(_ name: String) throws -> ServerProcess {
    try ServerProcess(
      "\(folder.path)/\(name)", environment: ["DENDRO_CLUSTER": postgres.address])
  }

  private func leads(_ server: ServerProcess, _ namespace: String = "default") -> Bool {
    let answer = try? PlainRequest.send("GET", server.port, "/.leader?ns=\(namespace)")
    return answer?.status == 200
  }

  private func leader(
    of servers: [ServerProcess], _ namespace: String = "default"
  ) async throws -> ServerProcess {
    try await eventually("a server leads") { servers.contains { leads($0, namespace) } }
    return try #require(servers.first { leads($0, namespace) })
  }

  private func get(_ server: ServerProcess, _ target: String) throws -> String {
    try PlainRequest.send("GET", server.port, target).body
  }

  @Test("a leader that is killed is replaced; every acknowledged write is there, and streams go on")
  func kill() async throws {
    var servers = try ["a", "b", "c"].map { try start($0) }
    let first = try await leader(of: servers)
    var expected: [String: Int] = [:]
    func write(_ server: ServerProcess) throws {
      for _ in 0..<20 {
        let name = "n\(expected.count)"
        let answer = try PlainRequest.send("PUT", server.port, "/n/\(name).json", "7")
        #expect(answer.status == 200, "\(answer.body)")
        expected[name] = 7
      }
    }
    func hasAll(_ server: ServerProcess) throws -> Bool {
      let data = Data(try get(server, "/n.json").utf8)
      return try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
        as? [String: Int] == expected
    }
    try write(first)
    let follower = try #require(servers.first { $0 !== first })
    // It passes on what its clients write, and shows it then.
    try write(follower)
    #expect(try hasAll(follower))
    #expect(try get(follower, "/.leader").contains("http://127.0.0.1:\(first.port)"))
    #expect(try get(follower, "/.status.json").contains("\"role\":\"follower\""))

    // A follower's stream goes on when another server takes over.
    let begun = DispatchSemaphore(value: 0)
    let port = follower.port
    let streamed = Task.detached {
      await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(
            returning: (try? PlainRequest.stream(port, "/sign.json", until: "takeover") {
              begun.signal()
            }) != nil)
        }
      }
    }
    #expect(Self.wait(begun))
    first.kill()
    servers.removeAll { $0 === first }
    let second = try await leader(of: servers)
    #expect(try hasAll(second))
    try write(second)
    let sign = try PlainRequest.send("PUT", second.port, "/sign.json", "\"takeover\"")
    #expect(sign.status == 200)
    #expect(await streamed.value)
    try await eventually("the other server has all writes") { try servers.allSatisfy(hasAll) }

    let name = try #require(
      ["a", "b", "c"].first { name in
        !servers.contains { $0.directory == "\(folder.path)/\(name)" }
      })
    let restarted = try start(name)
    try await eventually("the killed server follows") {
      let answer = try PlainRequest.send("GET", restarted.port, "/.leader")
      return answer.status == 503 && answer.body.contains("follower")
    }
    #expect(try hasAll(restarted))

    // One that ends in order is replaced as well.
    #expect(second.stop() == 0)
    let third = try await leader(of: servers.filter { $0 !== second } + [restarted])
    #expect(try hasAll(third))
  }

  private static func wait(_ semaphore: DispatchSemaphore) -> Bool {
    semaphore.wait(timeout: .now() + 60) == .success
  }

  @Test("a namespace that another server has made is there; one that none has is not")
  func namespaces() async throws {
    let first = try start("a")
    _ = try await leader(of: [first])
    #expect(try PlainRequest.send("PUT", first.port, "/x.json?ns=shop", "1").status == 200)
    let second = try start("b")
    #expect(try get(second, "/x.json?ns=shop") == "1")
    #expect(try PlainRequest.send("PUT", second.port, "/x.json?ns=shop", "2").status == 200)
    #expect(try get(second, "/x.json?ns=shop") == "2")
    #expect(try get(second, "/.leader?ns=none").contains("404"))
    #expect(try PlainRequest.send("GET", second.port, "/.leader?ns=none").status == 404)
    // One that is made at the second server is led there.
    #expect(try PlainRequest.send("PUT", second.port, "/x.json?ns=new", "3").status == 200)
    #expect(leads(second, "new"))
    try await eventually("the first server has it") { try get(first, "/x.json?ns=new") == "3" }
    // The second server opens the namespace although no client asks for it there.
    #expect(try PlainRequest.send("PUT", first.port, "/x.json?ns=late", "4").status == 200)
    try await eventually("the second server has it") {
      try get(second, "/.status.json").contains("\"late\":{\"lastLSN\":1")
    }
    first.kill()
    try await eventually("the second server leads it") {
      let figures = try get(second, "/.metrics")
      return figures.contains("dendro_cluster_leader{database=\"late\"} 1")
    }
  }

  @Test("while PostgreSQL is away all servers say that they can be read")
  func degraded() async throws {
    let servers = try ["a", "b"].map { try start($0) }
    _ = try await leader(of: servers)
    #expect(try PlainRequest.send("PUT", servers[0].port, "/x.json", "1").status == 200)
    try await eventually("all show it") { try servers.allSatisfy { try get($0, "/x.json") == "1" } }
    #expect(try get(servers[1], "/.status.json").hasPrefix("{\"status\":\"ok\""))
    postgres.stop()
    try await eventually("they have noticed it") {
      try servers.allSatisfy {
        let answer = try PlainRequest.send("GET", $0.port, "/.status.json")
        return answer.status == 200 && answer.body.hasPrefix("{\"status\":\"degraded\"")
      }
    }
    for server in servers { #expect(try get(server, "/x.json") == "1") }
    try postgres.start()
    try await eventually("they have noticed it") {
      try servers.allSatisfy {
        try get($0, "/.status.json").hasPrefix("{\"status\":\"ok\"")
      }
    }
  }

  @Test("a directory with databases of their own is refused, and nothing is made in it")
  func ownDatabases() async throws {
    #expect(try dendro("set", "\(folder.path)/own/shop", "/a", "1").status == 0)
    let names = try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/own/shop")
    let refused = try dendro(
      "serve", "\(folder.path)/own", "--port", "0", "--cluster", postgres.address)
    #expect(refused.status == 64)
    #expect(refused.output.contains("own/shop is a database of its own"), "\(refused.output)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/own/shop").sorted()
        == names.sorted())
  }

  @Test("a server ends although PostgreSQL does not answer, and one begins before it does")
  func silence() async throws {
    let server = try start("a")
    _ = try await leader(of: [server])
    #expect(try PlainRequest.send("PUT", server.port, "/x.json", "1").status == 200)
    postgres.freeze(true)
    let port = server.port
    let status = Task.detached {
      await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(
            returning: (try? PlainRequest.send("PUT", port, "/x.json", "2"))?.status)
        }
      }
    }
    try await eventually("the write waits for its answer") {
      try get(server, "/.metrics")
        .contains("dendro_cluster_undecided_total{database=\"default\"} 1")
    }
    #expect(server.stop() == 0)
    #expect([503, 504].contains(await status.value))
    let next = try start("b")
    #expect(try PlainRequest.send("GET", next.port, "/.status.json").status == 503)
    postgres.freeze(false)
    _ = try await leader(of: [next])
    #expect(["1", "2"].contains(try get(next, "/x.json")))
  }

  // MARK: dendro cluster

  @Test("dendro cluster status shows who leads, and writes nothing")
  func status() async throws {
    let nothing = try dendro("cluster", "status", postgres.address)
    #expect(nothing.status == 1)
    #expect(
      try postgres.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'dendro'") == "0")
    let servers = try ["a", "b"].map { try start($0) }
    let leader = try await leader(of: servers)
    #expect(try PlainRequest.send("PUT", leader.port, "/x.json", "1").status == 200)
    let follower = try #require(servers.first { $0 !== leader })
    try await eventually("the follower is there") {
      try get(follower, "/.leader").contains("follower")
    }
    let text = try dendro("cluster", "status", postgres.address)
    #expect(text.status == 0)
    #expect(text.output.contains("default: write 1, epoch 1, log of 1 row,"), "\(text.output)")
    #expect(text.output.contains("http://127.0.0.1:\(leader.port) leads"), "\(text.output)")
    #expect(text.output.contains("http://127.0.0.1:\(follower.port) follows"), "\(text.output)")
    let json = try dendro("cluster", "status", postgres.address, "--json").output
    let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    let namespace = try #require((object?["namespaces"] as? [[String: Any]])?.first)
    #expect(namespace["name"] as? String == "default")
    #expect(namespace["lsn"] as? Int == 1)
    #expect(namespace["leaderAddress"] as? String == "http://127.0.0.1:\(leader.port)")
    let listed = namespace["servers"] as? [[String: Any]] ?? []
    #expect(listed.map { $0["silent"] as? Bool } == [false, false])

    follower.kill()
    let after = try dendro("cluster", "status", postgres.address).output
    #expect(after.contains(/:\d+ leads, write 1\n/), "\(after)")
    #expect(after.contains("127.0.0.1:\(follower.port) follows, write 1, silent\n"), "\(after)")
  }

  @Test(
    "dendro cluster status does not take an old primary, which the servers have left, for the cluster"
  )
  func oldPrimary() async throws {
    let old = try PostgresServer()
    let gone = try ServerProcess(
      "\(folder.path)/gone", environment: ["DENDRO_CLUSTER": old.address])
    _ = try await leader(of: [gone])
    gone.kill()
    let alone = try dendro("cluster", "status", old.address).output
    #expect(alone.contains(":\(gone.port) leads, write 0, silent\n"), "\(alone)")
    let server = try start("a")
    _ = try await leader(of: [server])
    let both =
      "postgresql://postgres@127.0.0.1:\(old.port),127.0.0.1:\(postgres.port)/postgres"
    let status = try dendro("cluster", "status", both)
    #expect(status.output.contains(":\(server.port) leads, write 0\n"), "\(status.output)")
    // With no server anywhere that is heard, it shows what the first host has.
    server.kill()
    let silent = try dendro("cluster", "status", both)
    #expect(silent.output.contains(":\(gone.port) leads, write 0, silent\n"), "\(silent.output)")
  }

  @Test("copies are not served as databases of their own")
  func copies() async throws {
    let server = try start("a")
    _ = try await leader(of: [server])
    #expect(server.stop() == 0)
    for place in ["a", "a/default", "a/default/data"] {
      #expect(
        try dendro("serve", "\(folder.path)/\(place)", "--port", "0").status == 65, "\(place)")
    }
    for place in ["a/default", "a/default/data"] {
      #expect(
        try dendro(
          "serve", "\(folder.path)/\(place)", "--port", "0", "--cluster", postgres.address
        ).status == 64, "\(place)")
    }
  }
}
