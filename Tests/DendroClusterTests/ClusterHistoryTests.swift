import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

/// A server that is closed and opened again.
private final class Server: Sendable {
  let database = Mutex<Database?>(nil)
  let proxy: PostgresProxy
  /// What a reader at this server has seen, in its order.
  let seen = Mutex<[Int]>([])

  init(_ proxy: PostgresProxy) { self.proxy = proxy }
}

@Suite(
  "Histories of a cluster", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"),
  .serialized)
struct ClusterHistoryTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  private func open(_ name: String, _ server: Server) throws -> Database {
    cluster.address = server.proxy.address
    return try cluster.open(
      name, openingLimit: .seconds(60), showsAtOnce: false, isPatient: true
    ) {
      $0.statementTimeout = .milliseconds(400)
      $0.takeoverDelay = .milliseconds(600)
    }
  }

  /// Sets a register, and counts up, until told to end.
  private static func client(
    _ servers: [Server], _ history: WriteHistory, _ seed: UInt64, _ isEnded: Flag
  ) async {
    var random = SeededGenerator(seed: seed)
    while !isEnded.isSet {
      let server = servers[random.below(servers.count)]
      guard let database = server.database.withLock({ $0 }) else {
        try? await Task.sleep(for: .milliseconds(5))
        continue
      }
      let value = history.newValue()
      let begun = ContinuousClock.now
      var outcome = WriteHistory.Operation.Outcome.acknowledged
      do {
        try await database.reference().updateChildValues([
          "register": value, "count": ServerValue.increment(1),
        ])
      } catch let error as DatabaseError {
        // A server that is closed does not say whether it was before or behind the write.
        outcome = error.code == .pending || error.code == .closed ? .undecided : .refused
        try? await Task.sleep(for: .milliseconds(5))
      } catch {
        outcome = .undecided
      }
      history.add(.init(value, begun: begun, outcome))
    }
  }

  /// Reads the register at one server, again and again.
  private static func reader(_ server: Server, _ isEnded: Flag) async {
    while !isEnded.isSet {
      if let database = server.database.withLock({ $0 }),
        let value = try? await database.value("register")
      {
        server.seen.withLock { if $0.last != value { $0.append(value) } }
      }
      try? await Task.sleep(for: .milliseconds(1))
    }
  }

  private func disturb(
    _ servers: [Server], _ random: inout SeededGenerator
  ) async throws {
    let number = random.below(servers.count)
    let server = servers[number]
    switch random.below(9) {
    case 8:
      // Refused if another server has just taken over.
      let address = cluster.postgres.address
      for _ in 0..<4 {
        let next = servers[random.below(servers.count)].database.value?.node
        let id = next?.settings.serverID.description ?? ""
        _ = try? await waiting {
          try ClusterMove.run("shop", to: id, address: address, patience: .seconds(1))
        }
      }
    case 7:
      // Lines between servers, if there are some.
      let nodes = servers.compactMap { $0.database.value?.node }
      for _ in 0..<5 {
        nodes[random.below(nodes.count)].leaderLine?.close()
        for node in nodes where random.oneIn(4) { node.requests?.closeLines() }
        try await Task.sleep(for: .milliseconds(random.below(100)))
      }
    case 0:
      cluster.postgres.kill()
      try await Task.sleep(for: .milliseconds(20 + random.below(200)))
      try cluster.postgres.start()
    case 1:
      cluster.postgres.stop()
      try cluster.postgres.start()
    case 2:
      cluster.postgres.freeze(true)
      try await Task.sleep(for: .milliseconds(200 + random.below(1000)))
      cluster.postgres.freeze(false)
    case 3:
      let database = server.database.withLock { database in
        defer { database = nil }
        return database
      }
      try? await database?.close()
      if random.oneIn(2) {
        try FileManager.default.removeItem(atPath: cluster.directory("\(number)"))
      }
      let opened = try open("\(number)", server)
      server.database.withLock { $0 = opened }
    case 4: for _ in 0..<5 { server.proxy.cut() }
    default:
      server.proxy.set([.held, .deaf, .closed][random.below(3)])
      try await Task.sleep(for: .milliseconds(100 + random.below(1500)))
      server.proxy.set(.open)
      server.proxy.cut()
    }
  }

  @Test(
    "one order of all acknowledged writes explains what clients were told and what readers saw",
    arguments: Scale.onlySeed.map { $0..<$0 + 1 } ?? 0..<UInt64(max(2, Scale.scaled(200))))
  func histories(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    cluster.hasLines = seed.isMultiple(of: 2)
    let history = WriteHistory()
    let servers = try (0..<3).map { _ in Server(try PostgresProxy(to: cluster.postgres.port)) }
    for (number, server) in servers.enumerated() {
      let opened = try open("\(number)", server)
      server.database.withLock { $0 = opened }
    }
    let isEnded = Flag()
    try await withThrowingTaskGroup(of: Void.self) { group in
      // The group waits for them also if something throws.
      defer { isEnded.set() }
      for client in 0..<6 {
        group.addTask {
          await Self.client(servers, history, seed &* 31 &+ UInt64(client), isEnded)
        }
      }
      for server in servers { group.addTask { await Self.reader(server, isEnded) } }
      for _ in 0..<6 {
        let before = history.acknowledgedCount
        try await disturb(servers, &random)
        try await eventually("writes are acknowledged again, seed \(seed)") {
          history.acknowledgedCount >= before + 10
        }
      }
      isEnded.set()
      try await group.waitForAll()
    }
    try await check(servers, history, seed)
    for server in servers { try await server.database.value?.close() }
  }

  private func check(_ servers: [Server], _ history: WriteHistory, _ seed: UInt64) async throws {
    let databases = servers.compactMap { $0.database.value }
    let text = try cluster.postgres.query("SELECT lsn FROM dendro.head")
    let last = try #require(UInt64(text))
    for database in databases {
      try await eventually("all have all, seed \(seed)") { database.clusterStatus?.lsn == last }
      #expect(database.root == databases[0].root, "seed \(seed)")
    }
    // A copy from nothing has the whole log.
    cluster.address = nil
    let fresh = try cluster.open("fresh")
    #expect(fresh.root == databases[0].root, "seed \(seed)")
    let (order, problem) = try WriteHistory.Order.read(try #require(fresh.engine))
    #expect(problem == nil, "seed \(seed)")
    try await fresh.close()
    #expect(try await databases[0].value("count") == order.count, "seed \(seed)")
    #expect(history.problem(in: order) == nil, "seed \(seed)")
    // No reader of one server sees time go backwards, nor what does not stand.
    for server in servers {
      let seen = server.seen.value
      #expect(order.problem(ofSession: seen) == nil, "seed \(seed)")
    }
  }
}
