import Dendro
import DendroServer
import Testing

/// Serves a database in memory for the time of `body`.
func serving(
  _ change: (inout DatabaseServerOptions) -> Void = { _ in },
  _ body: (Served) async throws -> Void
) async throws {
  try await serving(Database.inMemory(), change, body)
}

/// Serves a database for the time of `body`, and closes it.
func serving(
  _ database: Database, _ change: (inout DatabaseServerOptions) -> Void = { _ in },
  _ body: (Served) async throws -> Void
) async throws {
  var options = DatabaseServerOptions.patient
  change(&options)
  let server = try await DatabaseServer.start(serving: database, options: options)
  do {
    try await body(Served(database: database, server: server))
  } catch {
    await server.stop()
    try await database.close()
    throw error
  }
  await server.stop()
  try await database.close()
}

struct Served {
  let database: Database
  let server: DatabaseServer

  func client() throws -> HTTPClient { try HTTPClient(port: server.port) }

  /// One of the figures of `/.metrics`.
  func figure(_ name: String) throws -> Int {
    let lines = try client()("GET", "/.metrics").body.split(separator: "\n")
    let line = try #require(lines.first { $0.hasPrefix("dendro_\(name) ") })
    return try #require(Int(line.split(separator: " ")[1]))
  }

  /// A connection that gets the events of a stream.
  ///
  /// - Parameter receiveBuffer: in bytes; nil for that of the system.
  func stream(
    _ target: String, _ headers: [String: String] = [:], receiveBuffer: Int32? = nil
  ) throws -> HTTPClient {
    let client = try HTTPClient(port: server.port, receiveBuffer: receiveBuffer)
    try client.send(
      HTTPClient.request(
        "GET", target, nil, headers.merging(["Accept": "text/event-stream"]) { $1 }))
    let head = try client.head()
    #expect(head.status == 200)
    #expect(head.headers["content-type"]?.hasPrefix("text/event-stream") == true)
    return client
  }
}

extension DatabaseServerOptions {
  /// Options for tests, whose deadlines a slow machine does not reach.
  static var patient: DatabaseServerOptions {
    var options = DatabaseServerOptions()
    options.headTimeout = .seconds(600)
    options.idleTimeout = .seconds(600)
    options.bodyRateInterval = .seconds(600)
    options.firstPollTimeout = .seconds(600)
    options.pollSilence = .seconds(600)
    options.signInTimeout = .seconds(600)
    options.messageTimeout = .seconds(600)
    options.readTimeout = .seconds(600)
    return options
  }
}
