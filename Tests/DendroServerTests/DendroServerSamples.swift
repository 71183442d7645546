import Dendro
import DendroServer
import DendroTestSupport
import Testing

/// Makes the same calls for a directory below `root`.
private enum Database {
  @TaskLocal static var root = ""

  static func open(at path: String) async throws -> Dendro.Database {
    try await Dendro.Database.open(at: "\(root)/\(path)")
  }
}

@Suite("DendroServer.md")
struct DendroServerSamples {
  @Test("a database of an app, served")
  func serve() async throws {
    let folder = try TemporaryFolder()
    try await Database.$root.withValue(folder.path) {
      // sample
      let database = try await Database.open(at: "/var/lib/app/data")
      let server = try await DatabaseServer.start(serving: database)
      // end
      try await database.reference().setValue(7)
      #expect(try HTTPClient(port: server.port)("GET", "/.json").body == "7")
      await server.stop()
      try await database.close()
    }
  }
}
