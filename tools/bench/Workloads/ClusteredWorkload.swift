import Dendro
import DendroCluster
import DendroPlatform
import DendroTestSupport
import Foundation
import Synchronization

extension Workload {
  static let clustered = Workload(
    "clustered", row: "clustered",
    """
    A database over a PostgreSQL with one synchronous standby, both on this machine: durable sets of 64 tasks through the \
    leader, and of 64 WebSockets at servers, beside pgbench with 64 clients that do the same upserts; how far a follower is behind; and how long a new server \
    takes; and a write to listeners at three servers. Needs PostgreSQL: `tools/install postgresql`.
    """,
    PostgresServer.isInstalled
      ? [
        Comparison("64 callers, one standby", "sets", [clusteredSets(64), pgbench(64)]),
        Comparison("1 caller, one standby", "sets", [clusteredSets(1), pgbench(1)]),
        Comparison(
          "64 WebSockets, one standby", "sets",
          [
            socketSets("at the leader"), socketSets("at a follower"), pgbench(64),
            socketSets("of a server alone"),
          ]),
        Comparison(
          "a write to 3,000 listeners at three servers", "deliveries",
          [fanOut(listenerCount: 3_000)]),
        Comparison("a follower", "sets", [followed]),
        Comparison("a new server, 1 million leaves", "leaves", [newServer]),
      ] : [])

  /// A PostgreSQL that acknowledges what its standby has.
  private static func withPostgres(
    _ body: (PostgresServer) async throws -> Measurement
  ) async throws -> Measurement {
    let settings = [
      "fsync = on", "autovacuum = on", "max_connections = 100", "shared_buffers = 128MB",
      "max_wal_size = 4GB",
    ]
    let primary = try PostgresServer(settings)
    let standby = try PostgresServer(standbyOf: primary, name: "standby", settings)
    try primary.setSynchronousStandbys("standby")
    let measurement = try await body(primary)
    try withExtendedLifetime(standby) {
      try expect(try standby.query("SELECT pg_is_in_recovery()") == "t", "the standby is there")
    }
    return measurement
  }

  private static func open(
    _ name: String, _ postgres: PostgresServer, _ turn: Turn
  ) async throws -> Database {
    try await Database.open(
      at: turn.directory.path + "/" + name, replicatedBy: postgres.address, namespace: "bench")
  }

  /// As a server opens it, with lines to others.
  private static func openServed(
    _ name: String, _ postgres: PostgresServer, _ turn: Turn
  ) throws -> Database {
    try Database.open(
      at: turn.directory.path + "/" + name, replicatedBy: postgres.address, namespace: "bench",
      reachedAt: "",
      lines: try ServerLines(listeningAt: "127.0.0.1", port: 0, advertisedHost: "127.0.0.1"),
      options: DatabaseOptions())
  }

  private static func clusteredSets(_ callerCount: Int) -> Contestant {
    Contestant("dendro, await setValue at the leader") { turn in
      let sets = PostSets(count: turn.scaled(callerCount == 1 ? 4_000 : 64_000))
      return try await withPostgres { postgres in
        let database = try await open("1", postgres, turn)
        let root = database.reference()
        let latencies = Latencies(sets.count)
        var measurement = try await Measurement.awaiting(sets.count) {
          try await latencies.inTasks(callerCount) { index in
            try await root.child(sets.paths[index]).setValue(sets.values[index])
          }
        }
        measurement.addLatencies(latencies.all)
        let appendCount = database.clusterStatus?.appendCount ?? 0
        measurement.add(
          "group", "sets an append", Double(sets.count) / Double(max(1, appendCount)))
        try sets.expectAll(in: database)
        try expect(
          try postgres.query("SELECT lsn FROM dendro.head") == "\(sets.count)", "all are there")
        try await database.close()
        return measurement
      }
    }
  }

  /// Sets over WebSockets, one after the other on each, at one of three servers; or at one without others, which
  /// synchronizes its own disk.
  private static func socketSets(_ place: String) -> Contestant {
    Contestant("dendro serve, \(place)") { turn in
      let sets = PostSets(count: turn.scaled(32_000))
      if place == "of a server alone" {
        let server = try ServeProcess(at: turn.directory)
        defer { server.stop() }
        return try socketSets(sets, at: server)
      }
      return try await withServers(turn) { servers in
        guard let server = servers.first(where: { leads($0) == (place == "at the leader") }) else {
          throw ServeError(description: "no server follows")
        }
        return try socketSets(sets, at: server)
      }
    }
  }

  private static func leads(_ server: ServeProcess) -> Bool {
    (try? PlainRequest.send("GET", server.port, "/.leader").status) == 200
  }

  /// Three servers, of which one leads and the others have lines to it.
  private static func withServers(
    _ turn: Turn, _ body: ([ServeProcess]) throws -> Measurement
  ) async throws -> Measurement {
    try await withPostgres { postgres in
      try FileManager.default.createDirectory(
        at: turn.directory, withIntermediateDirectories: true)
      let servers = try (1...3).map { number in
        try ServeProcess(
          at: turn.directory.appendingPathComponent("\(number)"), durability: nil,
          cluster: postgres.address)
      }
      defer { for server in servers { server.stop() } }
      while !servers.contains(where: leads) { usleep(10_000) }
      func hasLine(_ server: ServeProcess) -> Bool {
        let figures = (try? PlainRequest.send("GET", server.port, "/.metrics").body) ?? ""
        return figures.contains(/\ndendro_cluster_lines{.*} [1-9]/)
      }
      while !servers.allSatisfy(hasLine) { usleep(10_000) }
      return try body(servers)
    }
  }

  /// Listeners at all servers, a third at each, and a client of the leader that sets what they listen to.
  private static func fanOut(listenerCount: Int) -> Contestant {
    Contestant("dendro serve, three servers") { turn in
      let writeCount = turn.scaled(30)
      return try await withServers(turn) { servers in
        guard let leader = servers.first(where: leads) else {
          throw ServeError(description: "no server leads")
        }
        let connections = try servers.flatMap {
          try Workload.listeners(turn.scaled(listenerCount) / servers.count, $0)
        }
        let writer = try LoadConnection(port: leader.port)
        return try Workload.deliver(
          Audience(connections), connections.count, writeCount
        ) { number in
          _ = try writer.call(HTTPRequest.put("room", "\(1_000_000 + number)"))
        } processor: {
          servers.map(\.processorSeconds).reduce(0, +)
        } byteCount: {
          Workload.deliveryByteCount
        }
      }
    }
  }

  private static func socketSets(_ sets: PostSets, at server: ServeProcess) throws -> Measurement {
    let connections = try (0..<64).map { _ in try LoadConnection(port: server.port) }
    for connection in connections { try connection.upgrade() }
    let request: (Int, Int) -> [UInt8] = { number, index in
      WireRequestBytes.request(
        number, "p", "{\"p\":\"/\(sets.paths[index])\",\"d\":\"\(sets.values[index])\"}")
    }
    let answer = try connections[0].callWire(request(sets.count, 0))
    let load = RequestLoad(
      connections: connections, request: { request($0, $0) }, answerByteCount: answer.count,
      answerStart: Array(answer.prefix(2)))
    let before = server.processorSeconds
    var latencies: [Double] = []
    var measurement = try Measurement.blocking(sets.count) { latencies = try load.run(sets.count) }
    measurement.serverProcessorSeconds = server.processorSeconds - before
    measurement.addLatencies(latencies)
    let last = try connections[0].callWire(
      WireRequestBytes.request(sets.count + 1, "g", "{\"p\":\"/\(sets.paths[sets.count - 1])\"}"))
    try expect(
      String(decoding: last, as: UTF8.self).contains(sets.values[sets.count - 1]),
      "the last set shows")
    return measurement
  }

  /// What an application would write itself: a row for each leaf.
  private static func pgbench(_ clientCount: Int) -> Contestant {
    Contestant("pgbench, INSERT … ON CONFLICT DO UPDATE") { turn in
      let count = turn.scaled(clientCount == 1 ? 4_000 : 64_000)
      return try await withPostgres { postgres in
        try postgres.query("CREATE TABLE leaf (path text PRIMARY KEY, value text NOT NULL)")
        let script = turn.directory.path + ".sql"
        try """
        \\set id random(1, 1000000000000000000)
        INSERT INTO leaf VALUES ('posts/' || :id || '/body', md5(:id::text)) ON CONFLICT (path) DO UPDATE SET value = excluded.value;
        """.write(toFile: script, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: script) }
        let perClient = max(1, count / clientCount)
        let done = perClient * clientCount
        let measurement = try Measurement.blocking(done) {
          try postgres.run(
            "pgbench", "-n", "-M", "prepared", "-c", "\(clientCount)", "-j", "2", "-t",
            "\(perClient)", "-f", script, postgres.address)
        }
        try expect(try postgres.query("SELECT count(*) FROM leaf") == "\(done)", "all are there")
        return measurement
      }
    }
  }

  /// The time from a set at the leader until a listener of the follower has it, while 16 tasks set other leaves.
  private static let followed = Contestant("dendro, a listener at a follower") { turn in
    let count = turn.scaled(2_000)
    return try await withPostgres { postgres in
      let leader = try openServed("1", postgres, turn)
      let follower = try openServed("2", postgres, turn)
      while follower.clusterStatus?.lineCount == 0 { usleep(10_000) }
      let start = ContinuousClock.now
      func now() -> Int { Int((ContinuousClock.now - start) / .microseconds(1)) }
      let latencies = Mutex<[Double]>([])
      follower.reference(withPath: "time").observe(.value) { snapshot in
        guard let sent = snapshot.value as? Int else { return }
        let late = Int((ContinuousClock.now - start) / .microseconds(1)) - sent
        latencies.withLock { $0.append(Double(late) / 1e6) }
      }
      let beside = Beside()
      let sets = PostSets(count: 16_000)
      var measurement = try await Measurement.awaiting(count) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for task in 0..<16 {
            group.addTask {
              var index = task
              while !beside.isEnded.load(ordering: .relaxed) {
                let place = index % sets.count
                try await leader.reference(withPath: sets.paths[place]).setValue(sets.values[place])
                beside.count.add(1, ordering: .relaxed)
                index += 16
              }
            }
          }
          for _ in 0..<count { try await leader.reference(withPath: "time").setValue(now()) }
          beside.isEnded.store(true, ordering: .relaxed)
          try await group.waitForAll()
        }
      }
      let last = leader.clusterStatus?.lsn ?? 0
      while (follower.clusterStatus?.lsn ?? 0) < last { usleep(1000) }
      await follower.waitForPendingEvents()
      let heard = latencies.withLock { $0 }
      try expect(heard.count == count, "the listener has heard every set")
      measurement.addLatencies(heard, "until heard")
      measurement.add("beside", "sets", Double(beside.count.load(ordering: .relaxed)))
      try await follower.close()
      try await leader.close()
      return measurement
    }
  }

  /// What other tasks do meanwhile.
  private final class Beside: Sendable {
    let isEnded = Atomic<Bool>(false)
    let count = Atomic<Int>(0)
  }

  private static let newServer = Contestant("dendro, from nothing until it is in step") { turn in
    let count = turn.scaled(1_000_000)
    return try await withPostgres { postgres in
      let leader = try await open("1", postgres, turn)
      let sets = PostSets(count: count)
      for start in stride(from: 0, to: count, by: 10_000) {
        var values: [String: Any] = [:]
        for index in start..<min(count, start + 10_000) {
          values[sets.paths[index]] = sets.values[index]
        }
        try await leader.reference().updateChildValues(values)
      }
      var measurement = try await Measurement.awaiting(count) {
        let server = try await open("2", postgres, turn)
        try expect(
          server.clusterStatus?.lsn == leader.clusterStatus?.lsn, "it has all that was written")
        try await server.close()
      }
      measurement.add("time", "s", measurement.cost.seconds)
      try await leader.close()
      return measurement
    }
  }
}
