import Dendro
import DendroCluster
import DendroTestSupport
import DendroTree
import Testing

/// Makes the same call for the PostgreSQL and the directory of the test.
private enum Database {
  @TaskLocal static var place = (directory: "", address: "")

  static func open(
    at path: String, replicatedBy address: String, namespace: String
  ) async throws -> Dendro.Database {
    try await Dendro.Database.open(
      at: place.directory + "/" + path, replicatedBy: place.address, namespace: namespace)
  }
}

@Suite("DendroCluster.md", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct DendroClusterSamples {
  @Test("a database over PostgreSQL")
  func shop() async throws {
    let cluster = try TestCluster()
    let place = (directory: cluster.folder.path, address: cluster.postgres.address)
    try await Database.$place.withValue(place) {
      // sample
      let database = try await Database.open(
        at: "data", replicatedBy: "postgresql://dendro@db.example/dendro", namespace: "shop")
      print(database.clusterStatus?.role == .leader)
      try await database.reference(withPath: "orders").childByAutoId().setValue(["item": "bread"])
      try await database.close()
      // end
    }
    let again = try cluster.open("data")
    #expect(again.root.childCount == 1)
    try await again.close()
  }
}
