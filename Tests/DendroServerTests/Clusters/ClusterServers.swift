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
  ///
  /// - Parameter address: of PostgreSQL, or of what stands between.
  func start(_ name: String, at address: String? = nil) throws -> ServerProcess {
    try ServerProcess(
      "\(folder.path)/\(name)", environment: ["DENDRO_CLUSTER": address ?? postgres.address])
  }

  /// Removes what a server has, if it has come to have something.
  func removeDirectory(_ name: String) throws {
    let path = "\(folder.path)/\(name)"
    if FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
  }

  /// A server in this process, with a copy of all that PostgreSQL has.
  func openFresh() throws -> Database {
    try Database.open(
      at: folder.path + "/fresh", replicatedBy: postgres.address, namespace: "default")
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

/// Waits until a condition holds: as long as a slow machine may need, but not for ever.
func eventually(
  _ what: Comment, _ location: SourceLocation = #_sourceLocation,
  _ condition: () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + .seconds(60)
  while try !condition() {
    guard .now < deadline else {
      Issue.record(what, sourceLocation: location)
      return
    }
    try await Task.sleep(for: .milliseconds(5))
  }
}
