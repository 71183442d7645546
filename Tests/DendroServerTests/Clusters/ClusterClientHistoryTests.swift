import Dendro
import DendroEngine
import DendroTestSupport
import Dispatch
import Foundation
import Synchronization
import Testing

@Suite(
  "serving: histories of a cluster's clients",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"), .serialized)
struct ClusterClientHistoryTests {
  private static let fullCount = 500
  /// The first three take half a minute.
  private static let seeds =
    Scale.onlySeed.map { $0..<$0 + 1 }
    ?? 0..<UInt64(Scale.share <= 0.01 ? 3 : max(3, Scale.scaled(fullCount)))
  private static let tally = HistoryTally()

  private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }

  @Test(
    "of as many seeds as there are nemeses each meets all of them, and the first three what matters most"
  )
  func plans() {
    let plans = (0..<UInt64(Nemesis.allCases.count)).map(Nemesis.plan)
    #expect(Set(plans.joined()) == Set(Nemesis.allCases))
    #expect(Set(plans[..<3].joined()).isSuperset(of: [.serverKilled, .linesHeld, .failover]))
    for plan in plans {
      #expect(plan.count == Nemesis.countOfHistory && plan.count(where: \.needsStandby) < 2)
    }
  }

  @Test("one order of all writes explains what clients of all servers were told", arguments: seeds)
  func histories(seed: UInt64) async throws {
    let isLast = seed + 1 == Self.seeds.upperBound
    defer { if isLast { print(Self.tally.summary) } }
    let begun = ContinuousClock.now
    let plan = Nemesis.plan(seed: seed)
    let name = "seed \(seed): \(plan.map { "\($0)" }.joined(separator: ", "))"
    let cluster = try HistoryCluster(plan, SeededGenerator(seed: seed), Self.tally)
    let history = ClientHistory()
    let isEnded = Flag()
    defer { isEnded.set() }
    let clients = DispatchGroup()
    for number in 0..<8 {
      let kind = HistoryClient.Kind.allCases[number % 3]
      let client = HistoryClient(
        kind, number, cluster.places, history, seed &* 31 &+ UInt64(number),
        isEnded: { isEnded.isSet })
      clients.enter()
      Thread.detachNewThread {
        client.run()
        clients.leave()
      }
    }
    for nemesis in plan {
      let pause = try await cluster.disturb(nemesis, history)
      let before = history.writes.acknowledgedCount
      let problem = try await waitUntil { history.writes.acknowledgedCount >= before + 20 }
      // All that comes after would fail as well.
      try #require(
        problem == nil, "no write is acknowledged after \(nemesis), \(name); \(cluster.status)")
      if let pause { Self.tally.note(pause.kind, history.writes.longestPause(since: pause.since)) }
      cluster.endFormer()
    }
    isEnded.set()
    await withCheckedContinuation { continuation in
      clients.notify(queue: .global()) { continuation.resume() }
    }
    try await check(cluster, history, name)
    #expect(cluster.stop() == [0, 0, 0], "\(name)")
    Self.tally.note(history.writes, took: .now - begun)
    if isLast, Self.seeds.count >= Self.fullCount { #expect(Self.tally.missed.isEmpty) }
  }

  private func check(
    _ cluster: HistoryCluster, _ history: ClientHistory, _ name: String
  ) async throws {
    func all(_ server: ServerProcess) throws -> String {
      try HTTPClient(port: server.port)("GET", "/.json?format=export").body
    }
    // What sessions have left is written some seconds after their servers are gone.
    let registered = history.sessions.filter { $0.hasRegistered == true }.map(\.name)
    try await eventually("all sessions have left what they registered, \(name)") {
      let text = try HTTPClient(port: cluster.servers[0].port)("GET", "/left.json").body
      let left = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      let counts = left as? [String: Int] ?? [:]
      return registered.allSatisfy { counts[$0] != nil }
    }
    let database = try cluster.openFresh()
    let left = try await database.reference(withPath: "left").getData().value as? [String: Int]
    let twice = (left ?? [:]).filter { $0.value != 1 }
    #expect(twice.isEmpty, "\(name)")
    try await eventually("all servers have the same, \(name)") {
      try Set(cluster.servers.map(all)).count == 1
    }
    let (order, problem) = try WriteHistory.Order.read(try #require(database.engine))
    #expect(problem == nil, "\(name)")
    #expect(
      try await database.reference(withPath: "h/count").getData().value as? Int == order.count,
      "\(name)")
    try await database.close()
    #expect(history.writes.problem(in: order) == nil, "\(name)")
    // No session sees time go back, nor what does not stand; each sees its own writes.
    for session in history.sessions {
      #expect(order.problem(ofSession: session.values) == nil, "\(session.name), \(name)")
    }
  }
}
