import Dendro
import DendroTestSupport
import Foundation
import Testing

@testable import DendroCluster

@Suite(
  "dendro cluster restore, accept-loss",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterCommandRepairTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  /// The directory of a server has writes 1 to 3; PostgreSQL has the first.
  private func lost() async throws -> String {
    let database = try cluster.open("1")
    try await database.reference(withPath: "n1").setValue(1)
    try cluster.postgres.query("CREATE TABLE kept AS TABLE dendro.head")
    for number in 2...3 { try await database.reference(withPath: "n\(number)").setValue(number) }
    try await database.close()
    try cluster.postgres.query(
      "DELETE FROM dendro.head; INSERT INTO dendro.head TABLE kept; DELETE FROM dendro.log WHERE last > 1"
    )
    return cluster.directory("1")
  }

  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test("restore says what is in question, puts it back, and has nothing to do then")
  func restore() async throws {
    let directory = try await lost()
    let address = cluster.postgres.address
    let rehearsal = try dendro("cluster", "restore", "--dry-run", directory, address)
    #expect(rehearsal.status == 0)
    #expect(
      rehearsal.output
        == "shop: PostgreSQL's log ends with write 1, and \(directory) has 2 writes that it lacks, 2 to 3; they would be put there again\n"
    )
    #expect(try cluster.postgres.query("SELECT lsn FROM dendro.head") == "1")
    let done = try dendro("cluster", "restore", "--json", directory, address)
    #expect(done.status == 0)
    let members = try object(done.output)
    #expect(members["namespace"] as? String == "shop")
    #expect(members["first"] as? Int == 2)
    #expect(members["writes"] as? Int == 2)
    #expect(members["restored"] as? Bool == true)
    #expect(try cluster.postgres.query("SELECT lsn FROM dendro.head") == "3")
    for action in ["restore", "accept-loss"] {
      let again = try dendro("cluster", action, directory, address)
      #expect(again.status == 1)
      #expect(again.output.contains("no write is in question"), "\(again.output)")
    }
  }

  @Test("accept-loss says where the writes are, and the line that it names shows them")
  func acceptLoss() async throws {
    let directory = try await lost()
    let address = cluster.postgres.address
    let running = try cluster.open("2")
    let locked = try dendro("cluster", "accept-loss", cluster.directory("2"), address)
    #expect(locked.status == 75, "\(locked.output)")
    try await running.close()
    let rehearsal = try dendro("cluster", "accept-loss", "-n", directory, address)
    #expect(rehearsal.status == 0)
    #expect(FileManager.default.fileExists(atPath: directory + "/data"))
    let done = try dendro("cluster", "accept-loss", directory, address)
    #expect(done.status == 0)
    #expect(done.output.contains("2 writes that it lacks, 2 to 3"), "\(done.output)")
    #expect(!FileManager.default.fileExists(atPath: directory + "/data"))
    let line = try #require(done.output.firstMatch(of: /'dendro log (.+) --since ([0-9]+)'/))
    let shown = try dendro("log", String(line.1), "--since", String(line.2))
    #expect(shown.status == 0)
    #expect(shown.output.contains("/n2"), "\(shown.output)")
    #expect(shown.output.contains("/n3"), "\(shown.output)")
    #expect(!shown.output.contains("/n1"), "\(shown.output)")
    let again = try cluster.open("1")
    #expect(again.clusterStatus?.lsn == 1)
    try await again.close()
  }
}
