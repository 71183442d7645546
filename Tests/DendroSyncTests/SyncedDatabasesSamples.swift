import Dendro
import DendroRules
import DendroServer
import Testing

@Suite("SyncedDatabases.md")
struct SyncedDatabasesSamples {
  @Test("signing in")
  func signIn() async throws {
    let rules = try Rules(#"{"rules":{".write":"auth.uid == 'ann'"}}"#)
    try await serving { options in
      options.rules = rules
      options.trustsUnsignedTokens = true
    } _: { _, server in
      let database = synced(Int(server.port))
      let fetchToken: @Sendable () async throws -> String = { unsignedToken("ann") }
      // sample
      try database.authenticate { .user(try await fetchToken()) }
      // end
      try await database.reference(withPath: "a").setValue(1)
      try await database.close()
    }
  }
}
