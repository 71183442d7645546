import Dendro
import DendroServer
import Testing

/// Where a server listens, and that there is one for a database.
@Suite("serving: addresses")
struct HostsTests {
  @Test("one server listens at several addresses, all at the same port")
  func several() async throws {
    try await serving({ $0.hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.1"] }) { served in
      let port = served.server.port
      let first = try HTTPClient(port: port)
      let second = try HTTPClient(port: port, at: "127.0.0.2")
      #expect(try first("PUT", "/a.json", "1").status == 200)
      #expect(try second("GET", "/a.json").body == "1")
      #expect(throws: HTTPClient.Ended.self) { try HTTPClient(port: port, at: "127.0.0.3") }
    }
  }

  @Test("localhost is what every program takes for it")
  func localhost() async throws {
    let hasIPv6 = HTTPClient.hasAddress("::1")
    try await serving({ $0.host = "localhost" }) { served in
      #expect(try HTTPClient(port: served.server.port)("GET", "/a.json").status == 200)
      guard hasIPv6 else { return }
      let http = try HTTPClient(port: served.server.port, at: "::1")
      #expect(try http("GET", "/a.json", nil, ["Host": "[::1]"]).status == 200)
    }
  }

  @Test("what is open by default is so only if all addresses are this machine's")
  func defaults() async throws {
    let database = Database.inMemory()
    var options = DatabaseServerOptions.patient
    options.hosts = ["127.0.0.1", "0.0.0.0"]
    await #expect {
      try await DatabaseServer.start(serving: database, options: options)
    } throws: {
      ($0 as? DatabaseServerError)?.message.hasPrefix("0.0.0.0 may be reached by others") ?? false
    }
    options.hosts = []
    await #expect(throws: DatabaseServerError.self) {
      try await DatabaseServer.start(serving: database, options: options)
    }
    try await database.close()
    // The address of all of IPv6 is not that of IPv4 as well.
    guard HTTPClient.hasAddress("::1") else { return }
    try await serving({
      $0.hosts = ["127.0.0.1", "::"]
      $0.authorizer = AdministratorsAuthorizer()
    }) { served in
      let bearer = ["Authorization": "Bearer owner"]
      for host in ["127.0.0.1", "::1"] {
        let http = try HTTPClient(port: served.server.port, at: host)
        #expect(try http("GET", "/a.json", nil, bearer).status == 401)
        #expect(try http("GET", "/").status == 404)
      }
    }
  }

  @Test("a second server for a database is refused, and the first one goes on")
  func second() async throws {
    try await serving { served in
      let stream = try served.stream("/.json")
      #expect(try stream.event() == "put {\"path\":\"/\",\"data\":null}")
      for _ in 0..<2 {
        await #expect {
          try await DatabaseServer.start(serving: served.database)
        } throws: {
          ($0 as? DatabaseServerError)?.message.hasPrefix("another server serves the database")
            ?? false
        }
      }
      #expect(try served.client()("PUT", "/a.json", "1").status == 200)
      #expect(try stream.event() == "put {\"path\":\"/a\",\"data\":1}")
      await served.server.stop()
      let next = try await DatabaseServer.start(serving: served.database)
      #expect(try HTTPClient(port: next.port)("GET", "/a.json").body == "1")
      await next.stop()
    }
  }

  @Test("a port that another program has is not shared")
  func taken() async throws {
    try await serving { served in
      let database = Database.inMemory()
      for hosts in [["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]] {
        var options = DatabaseServerOptions.patient
        options.hosts = hosts
        options.port = served.server.port
        await #expect {
          try await DatabaseServer.start(serving: database, options: options)
        } throws: {
          ($0 as? DatabaseServerError)?.message.hasPrefix(
            "cannot listen at 127.0.0.1:\(served.server.port)") ?? false
        }
      }
      // What was refused has let go of the database.
      await (try DatabaseServer.start(serving: database)).stop()
      try await database.close()
    }
  }

  @Test("where there is no room for a connection, it waits until there is")
  func waiting() async throws {
    try await serving({
      $0.connectionLimit = 2
      $0.connectionLimitByAddress = 2
    }) { served in
      var held = try (0..<2).map { _ in try served.client() }
      for client in held { #expect(try client("GET", "/a.json").body == "null") }
      let late = try HTTPClient(port: served.server.port, from: "127.0.0.2")
      try late.send(HTTPClient.request("PUT", "/a.json", "1"))
      #expect(try held[0]("GET", "/a.json").body == "null")
      held.removeLast()
      #expect(try late.answer().status == 200)
      #expect(try held[0]("GET", "/a.json").body == "1")
    }
  }
}
