import Dendro
import DendroCluster
import DendroServer
import DendroTestSupport
import Foundation
import Testing

/// Servers as processes of their own, with one database that is in a PostgreSQL.
final class ClusterServers {
  let postgres: PostgresServer
  private let folder: TemporaryFolder

  init() throws {
    postgres = try PostgresServer()
    folder = try TemporaryFolder()
  }

  /// Starts a server; once it shows the data, if PostgreSQL answers.
  func start(_ name: String) throws -> ServerProcess {
    try ServerProcess(
      "\(folder.path)/\(name)", environment: ["DENDRO_CLUSTER": postgres.address])
  }

  static let administrator = ["Authorization": "Bearer owner"]

  static func leads(_ server: ServerProcess) -> Bool {
    (try? HTTPClient(port: server.port)("GET", "/.leader").status) == 200
  }

  /// The server that leads, once one does, and the others.
  static func roles(
    of servers: [ServerProcess]
  ) async throws -> (leader: ServerProcess, followers: [ServerProcess]) {
    try await eventually("a server leads") { servers.contains { leads($0) } }
    let leader = try #require(servers.first { leads($0) })
    return (leader, servers.filter { $0 !== leader })
  }
}

/// Waits until a condition holds; otherwise the test has failed.
func eventually(
  _ what: Comment, _ location: SourceLocation = #_sourceLocation,
  _ condition: () throws -> Bool
) async throws {
  if let problem = try await waitUntil(condition) {
    Issue.record("\(what): \(problem)", sourceLocation: location)
  }
}
