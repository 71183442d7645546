import Dendro
import DendroServer

/// What DendroServer.md shows. It is compiled and not run, since its directory is that of an app.
enum DendroServerSamples {
  static func serve() async throws -> DatabaseServer {
    // sample
    let database = try await Database.open(at: "/var/lib/app/data")
    let server = try await DatabaseServer.start(serving: database)
    // end
    return server
  }
}
