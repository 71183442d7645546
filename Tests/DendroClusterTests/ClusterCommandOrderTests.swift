import DendroTestSupport
import Foundation
import Testing

@Suite(
  "dendro cluster verify, drain, move",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterCommandOrderTests {
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

  private func leads(_ server: ServerProcess, _ namespace: String) -> Bool {
    let answer = try? PlainRequest.send("GET", server.port, "/.leader?ns=\(namespace)")
    return answer?.status == 200
  }

  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test("a server that is drained leads no namespace, others do, and all have the same")
  func servers() async throws {
    let servers = try ["a", "b"].map { try start($0) }
    try await eventually("one leads") { servers.contains { leads($0, "default") } }
    let first = try #require(servers.first { leads($0, "default") })
    let second = try #require(servers.first { $0 !== first })
    for namespace in ["default", "shop"] {
      #expect(
        try PlainRequest.send("PUT", first.port, "/x.json?ns=\(namespace)", "1").status == 200)
      // It is some milliseconds behind.
      try await eventually("the second one has it") {
        try PlainRequest.send("GET", second.port, "/x.json?ns=\(namespace)").body == "1"
      }
    }
    try await eventually("the first leads both") { leads(first, "shop") }
    let place = "127.0.0.1:\(first.port)"

    let drained = try dendro("cluster", "drain", place, postgres.address, "--json")
    #expect(drained.status == 0, "\(drained.output)")
    let namespaces = try #require(try object(drained.output)["namespaces"] as? [[String: Any]])
    #expect(namespaces.map { $0["name"] as? String } == ["default", "shop"])
    #expect(
      namespaces.allSatisfy { $0["leader"] as? String == "http://127.0.0.1:\(second.port)" })
    try await eventually("it leads both") { leads(second, "default") && leads(second, "shop") }
    // It still takes clients.
    #expect(try PlainRequest.send("PUT", first.port, "/x.json", "2").status == 200)
    let status = try dendro("cluster", "status", postgres.address)
    #expect(status.output.contains(/\/127.0.0.1:\d+ follows, .*drained/), "\(status.output)")
    let refused = try dendro("cluster", "move", "shop", place, postgres.address)
    #expect(refused.status == 1)
    #expect(refused.output.contains("is drained"), "\(refused.output)")

    let ended = try dendro("cluster", "drain", "--end", place, postgres.address)
    #expect(ended.status == 0, "\(ended.output)")
    #expect(try dendro("cluster", "drain", "--end", place, postgres.address).status == 1)
    let moved = try dendro("cluster", "move", "shop", place, postgres.address)
    #expect(moved.status == 0, "\(moved.output)")
    #expect(moved.output == "shop: \(place) leads\n")
    try await eventually("it leads") { leads(first, "shop") && leads(second, "default") }
    let places = try dendro("cluster", "status", postgres.address)
    #expect(places.output.contains("shop: write 1, epoch "), "\(places.output)")
    #expect(places.output.contains(", moved to http://\(place)\n"), "\(places.output)")
    let left = try dendro("cluster", "move", "--end", "shop", postgres.address)
    #expect(left.output == "shop: its servers choose who leads\n")
    let again = try dendro("cluster", "move", "--end", "shop", postgres.address)
    #expect(again.status == 1)
    #expect(again.output.contains("shop was not moved"), "\(again.output)")

    let verified = try dendro("cluster", "verify", "default", postgres.address)
    #expect(verified.status == 0, "\(verified.output)")
    #expect(verified.output.hasPrefix("default: 2 servers at write 2\n"), "\(verified.output)")
    #expect(verified.output.hasSuffix("all agree\n"), "\(verified.output)")
    let json = try dendro("cluster", "verify", "default", postgres.address, "--json")
    let members = try object(json.output)
    #expect(members["verdict"] as? String == "agree")
    let hashes = (members["servers"] as? [[String: Any]] ?? []).map { $0["hash"] as? String }
    let own = try dendro("hash", "\(folder.path)/a/default/data")
    #expect(own.output == "\(try #require(hashes.first as? String))\n")
    #expect(hashes.count == 2 && hashes.first == hashes.last)
  }
}
