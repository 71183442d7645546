import Dendro
import DendroServer
import Testing

/// Makes the same call for the server of the test.
private enum Database {
  @TaskLocal static var port = 0

  static func database(url: String) -> Dendro.Database { synced(port) }
}

/// The tests' other databases stay what they are.
private enum DendroSync {
  static func enable() {}
}

@Suite("DendroSync.md")
struct DendroSyncSamples {
  @Test("a list of a server")
  func list() async throws {
    try await serving { served, server in
      try await Database.$port.withValue(Int(server.port)) {
        // sample
        DendroSync.enable()
        let database = Database.database(url: "http://127.0.0.1:9000?ns=shop")
        let list = database.reference(withPath: "list")
        list.observe(.value) { snapshot in print(snapshot.childrenCount, "things to buy") }
        try await list.childByAutoId().setValue("bread")
        try await database.waitForPendingWrites()
        // end
        #expect(try await served.reference(withPath: "list").getData().childrenCount == 1)
        try await database.close()
      }
    }
  }
}
