import Dendro
import DendroSync
import Dispatch
import Foundation

extension Workload {
  /// A directory is opened that has kept 100,000 children with ten leaves each, when the server is gone.
  static let openingOfCached = Comparison(
    "opening, 1 million leaves cached", "openings",
    [
      Contestant(
        "dendro, synced in a directory", prepare: { try await fillCache($0) },
        measure: { try await measureOpening($0) })
    ])

  private static func sets(_ turn: Turn) -> PostSets {
    PostSets(count: turn.scaled(1_000_000), fields: (0..<10).map { "field\($0)" })
  }

  private static func fillCache(_ turn: Turn) async throws {
    let folder = turn.directory.appendingPathComponent("server")
    let sets = sets(turn)
    let namespace = Turn(
      directory: folder.appendingPathComponent("default"), isQuick: turn.isQuick)
    try await namespace.withDatabase { database in
      try sets.write(to: database)
      try await database.checkpoint()
    }
    try await serving(Turn(directory: folder, isQuick: turn.isQuick)) { server in
      let database = try openCache(turn, port: "\(server.port)")
      let came = DispatchSemaphore(value: 0)
      let posts = database.reference(withPath: "posts")
      posts.observe(.value) { _ in came.signal() }
      wait(came, 1)
      posts.removeAllObservers()
      window(50, of: database).observe(.value) { _ in came.signal() }
      wait(came, 1)
      try await settle(database)
      try await database.checkpoint()
      try await database.close()
      try "\(server.port)".write(to: portFile(turn), atomically: true, encoding: .utf8)
    }
  }

  private static func measureOpening(_ turn: Turn) async throws -> Measurement {
    let port = try String(contentsOf: portFile(turn), encoding: .utf8)
    let came = DispatchSemaphore(value: 0)
    var opened: Database?
    var moments: [ContinuousClock.Instant] = []
    var measurement = try Measurement.blocking(1) {
      moments.append(.now)
      let database = try openCache(turn, port: port)
      moments.append(.now)
      window(50, of: database).observe(.value) { _ in came.signal() }
      came.wait()
      moments.append(.now)
      opened = database
    }
    guard let database = opened else { throw WrongResult(claim: "it opens") }
    measurement.add("opening", "ms", (moments[1] - moments[0]) / .milliseconds(1))
    measurement.add("window of 50", "ms", (moments[2] - moments[1]) / .milliseconds(1))
    // One that was not listened to before is made of what is kept as a whole.
    let start = ContinuousClock.now
    window(49, of: database).observe(.value) { _ in came.signal() }
    wait(came, 1)
    measurement.add("another window", "ms", (ContinuousClock.now - start) / .milliseconds(1))
    database.goOffline()
    let shown = try await window(50, of: database).getData()
    let all = try await database.reference(withPath: "posts").getData()
    let postCount = sets(turn).postCount
    try expect(Int(shown.childrenCount) == 50, "the window is there")
    try expect(Int(all.childrenCount) == postCount, "all children are there")
    try await database.close()
    return measurement
  }

  // MARK: Parts

  private static func openCache(_ turn: Turn, port: String) throws -> Database {
    DendroSync.enable()
    let database = try Database.open(
      at: turn.directory.appendingPathComponent("client").path,
      syncingWith: "http://127.0.0.1:\(port)")
    // Nothing is to go once nothing is listened to.
    database.persistenceCacheSizeBytes = 100 << 20
    return database
  }

  private static func window(_ count: UInt, of database: Database) -> DatabaseQuery {
    database.reference(withPath: "posts").queryOrderedByKey().queryLimited(toLast: count)
  }

  /// Where the server was: a directory belongs to it.
  private static func portFile(_ turn: Turn) -> URL {
    turn.directory.appendingPathComponent("port")
  }
}
