import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite("Bad days of a cluster", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct ClusterFaultTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  /// Counts up from several tasks, until told to end.
  private final class Counting: Sendable {
    private let isEnded = Atomic<Bool>(false)
    /// How many increments were acknowledged, and of how many that is not known.
    let counts = Mutex<(acknowledged: Int, undecided: Int)>((0, 0))
    private let tasks = Mutex<[Task<Void, Never>]>([])

    var acknowledged: Int { counts.withLock { $0.acknowledged } }

    init(_ databases: [Database], taskCount: Int = 4) {
      for database in databases {
        for _ in 0..<taskCount {
          let task = Task.detached { [self] in
            while !isEnded.load(ordering: .relaxed) {
              do {
                try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
                counts.withLock { $0.acknowledged += 1 }
              } catch let error as DatabaseError where error.code == .pending {
                counts.withLock { $0.undecided += 1 }
              } catch {
                try? await Task.sleep(for: .milliseconds(2))
              }
            }
          }
          tasks.withLock { $0.append(task) }
        }
      }
    }

    func end() async {
      isEnded.store(true, ordering: .relaxed)
      for task in tasks.withLock({ $0 }) { await task.value }
    }
  }

  private func hasCounted(_ counting: Counting, _ more: Int) async throws {
    let before = counting.acknowledged
    try await eventually("writes are acknowledged") { counting.acknowledged >= before + more }
  }

  /// Whether each acknowledged increment counts once, in all servers.
  private func check(_ counting: Counting, _ databases: [Database]) async throws {
    let counts = counting.counts.value
    let last = databases.compactMap { $0.clusterStatus?.sharedLSN }.max() ?? 0
    for database in databases {
      try await eventually("all have all") { (database.clusterStatus?.lsn ?? 0) >= last }
      let count = try await database.value("count") ?? 0
      #expect(
        (counts.acknowledged...(counts.acknowledged + counts.undecided)).contains(count))
      #expect(database.root == databases[0].root)
    }
  }

  @Test("PostgreSQL is killed and started again: each acknowledged write counts once")
  func killedPostgres() async throws {
    let databases = [try cluster.open("1"), try cluster.open("2")]
    let counting = Counting(databases)
    for _ in 0..<3 {
      try await hasCounted(counting, 50)
      cluster.postgres.kill()
      try await Task.sleep(for: .milliseconds(50))
      try cluster.postgres.start()
    }
    try await hasCounted(counting, 50)
    await counting.end()
    try await check(counting, databases)
    for database in databases { try await database.close() }
  }

  @Test("lines are cut, held, and lose answers: each acknowledged write counts once")
  func lines() async throws {
    let proxies = [
      try PostgresProxy(to: cluster.postgres.port), try PostgresProxy(to: cluster.postgres.port),
    ]
    let databases = try proxies.enumerated().map { index, proxy in
      cluster.address = proxy.address
      return try cluster.open("\(index)", isPatient: true) {
        $0.statementTimeout = .milliseconds(300)
        // Shorter than a line is held: they take over from each other.
        $0.takeoverDelay = .milliseconds(600)
      }
    }
    let counting = Counting(databases)
    for (mode, number) in [(PostgresProxy.Mode.deaf, 0), (.held, 0), (.closed, 1), (.deaf, 1)] {
      try await hasCounted(counting, 30)
      proxies[number].set(mode)
      try await Task.sleep(for: .milliseconds(800))
      proxies[number].set(.open)
      proxies[number].cut()
      try await hasCounted(counting, 30)
      for _ in 0..<5 {
        proxies[0].cut()
        proxies[1].cut()
        try await hasCounted(counting, 3)
      }
    }
    await counting.end()
    try await check(counting, databases)
    for database in databases { try await database.close() }
  }

  @Test("a leader that is cut off leads no more: what it had not written is taken back")
  func cutOff() async throws {
    let proxy = try PostgresProxy(to: cluster.postgres.port)
    cluster.address = proxy.address
    let first = try cluster.open("1", isPatient: true) { $0.statementTimeout = .milliseconds(300) }
    cluster.address = nil
    let second = try cluster.open("2")
    try await first.reference(withPath: "a").setValue(1)
    let seen = Mutex<[Int?]>([])
    first.reference(withPath: "a").observe(.value) { snapshot in
      seen.withLock { $0.append(snapshot.value as? Int) }
    }
    try await eventually("the listener begins") { seen.value == [1] }
    // What is sent reaches PostgreSQL too late.
    proxy.set(.held)
    let late = Task { try await first.reference(withPath: "a").setValue(2) }
    try await eventually("the app sees its write") { seen.value.last == 2 }
    try await eventually("the second takes over") { second.isLeader }
    try await second.reference(withPath: "a").setValue(3)
    // Meanwhile the first refuses writes, and still shows what it has.
    try await eventually("the first refuses writes") { first.engine?.writeRefusal != nil }
    #expect(first.clusterStatus?.trouble != nil)
    let refusal = await #expect(throws: DatabaseError.self) {
      try await first.reference(withPath: "b").setValue(1)
    }
    #expect(refusal?.code == .unavailable)
    proxy.set(.open)
    proxy.cut()
    let lost = await #expect(throws: DatabaseError.self) { try await late.value }
    #expect(lost?.code == .unavailable)
    try await eventually("the first follows") {
      first.clusterStatus?.role == .follower && seen.value.last == 3
    }
    #expect(seen.value == [1, 2, 1, 3])
    #expect(first.root == second.root)
    try await eventually("no trouble is left") { first.clusterStatus?.trouble == nil }
    try await first.close()
    try await second.close()
  }

  @Test("an answer that was lost is found out: the write stands, once")
  func lostAnswer() async throws {
    let proxy = try PostgresProxy(to: cluster.postgres.port)
    cluster.address = proxy.address
    let database = try cluster.open("1", isPatient: true) {
      $0.statementTimeout = .milliseconds(300)
      $0.takeoverDelay = .seconds(3600)
    }
    try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
    let before = try #require(database.clusterStatus?.undecidedCount)
    proxy.set(.deaf)
    let write = Task {
      try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
    }
    try await eventually("PostgreSQL has it") {
      try cluster.postgres.query("SELECT lsn FROM dendro.head") == "2"
    }
    proxy.set(.open)
    proxy.cut()
    _ = try await write.value
    #expect(try await database.value("count") == 2)
    #expect(database.clusterStatus?.lsn == 2)
    #expect(database.clusterStatus?.undecidedCount == before + 1)
    try await database.close()
  }

  @Test("without its standby PostgreSQL acknowledges nothing; with it, all that waited stands")
  func missingStandby() async throws {
    let standby = try PostgresServer(standbyOf: cluster.postgres, name: "standby")
    try cluster.postgres.setSynchronousStandbys("standby")
    let database = try cluster.open("1")
    try await database.reference(withPath: "a").setValue(1)
    standby.stop()
    let isDone = Mutex(false)
    let write = Task {
      try await database.reference(withPath: "a").setValue(2)
      isDone.withLock { $0 = true }
    }
    try await eventually("writes are refused meanwhile") { database.clusterStatus?.trouble != nil }
    #expect(isDone.withLock { !$0 })
    try await eventually("new writes are refused") { database.engine?.writeRefusal != nil }
    try standby.start()
    _ = try await write.value
    try await eventually("writes are taken again") { database.engine?.writeRefusal == nil }
    try await database.reference(withPath: "a").setValue(3)
    try await database.close()
  }

  @Test(
    "PostgreSQL fails over to its synchronous standby: nothing acknowledged is lost",
    arguments: [true, false])
  func failover(oldPrimaryIsKilled: Bool) async throws {
    let standby = try PostgresServer(standbyOf: cluster.postgres, name: "standby")
    try cluster.postgres.setSynchronousStandbys("standby")
    let address =
      "postgresql://postgres@127.0.0.1:\(cluster.postgres.port),127.0.0.1:\(standby.port)/postgres"
    cluster.address = address
    let databases = [try cluster.open("1"), try cluster.open("2")]
    let names = ClusterNames(address)
    #expect(try names.all() == ["shop"])
    let counting = Counting(databases)
    try await hasCounted(counting, 100)
    // One that goes on to run takes connections, and no writes, since its standby is gone.
    if oldPrimaryIsKilled { cluster.postgres.kill() }
    try standby.promote()
    try await hasCounted(counting, 100)
    let other = try cluster.open("other", namespace: "other")
    #expect(try names.has("other"))
    try await other.close()
    await counting.end()
    try await check(counting, databases)
    for database in databases { try await database.close() }
    // A new server finds it too.
    let fresh = try cluster.open("3")
    #expect(fresh.root == databases[0].root)
    try await fresh.close()
  }

  @Test("a primary is started again without its standby, which becomes the primary beside it")
  func primaryAlone() async throws {
    let line = try PostgresProxy(to: cluster.postgres.port)
    let standby = try PostgresServer(
      standbyOf: cluster.postgres, at: line.address, name: "standby")
    try cluster.postgres.setSynchronousStandbys("standby")
    cluster.address =
      "postgresql://postgres@127.0.0.1:\(cluster.postgres.port),127.0.0.1:\(standby.port)/postgres"
    let databases = [try cluster.open("1"), try cluster.open("2")]
    let counting = Counting(databases)
    try await hasCounted(counting, 100)
    // What waits for the standby is there once the primary is started again, and the standby lacks it.
    line.set(.closed)
    let lsn = try cluster.postgres.query("SELECT pg_current_wal_lsn()")
    try await eventually("something waits") {
      try cluster.postgres.query("SELECT pg_current_wal_lsn() > '\(lsn)'") == "t"
    }
    cluster.postgres.kill()
    // For a while servers cannot connect to PostgreSQL.
    try await Task.sleep(for: .seconds(3))
    try cluster.postgres.start()
    try await eventually("they wait for it") {
      try cluster.postgres.query(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "t"
    }
    try standby.promote()
    try await hasCounted(counting, 100)
    await counting.end()
    try await check(counting, databases)
    for database in databases { try await database.close() }
  }

  @Test(
    "a PostgreSQL that was set back gets from its leader what it has lost, or is noticed by whoever has more",
    arguments: [true, false])
  func setBack(leaderIsThere: Bool) async throws {
    let standby = try PostgresServer(standbyOf: cluster.postgres, name: "standby")
    cluster.address =
      "postgresql://postgres@127.0.0.1:\(cluster.postgres.port),127.0.0.1:\(standby.port)/postgres"
    let adjust = { @Sendable (settings: inout ClusterSettings) in
      if leaderIsThere { settings.setBackDelay = .seconds(60) }
    }
    let first = try cluster.open("1", adjust: adjust)
    let second = try cluster.open("2", adjust: adjust)
    try await first.reference(withPath: "a").setValue(1)
    let lsn = try cluster.postgres.query("SELECT pg_current_wal_lsn()")
    try await eventually("the standby has it") {
      try standby.query("SELECT pg_last_wal_replay_lsn() >= '\(lsn)'") == "t"
    }
    // From here on the standby lacks what is acknowledged.
    standby.stop()
    try await first.reference(withPath: "a").setValue(2)
    try await eventually("the second has it") { second.clusterStatus?.lsn == 2 }
    if !leaderIsThere { try await first.close() }
    cluster.postgres.kill()
    try standby.start()
    try standby.promote()
    if leaderIsThere {
      try await eventually("PostgreSQL has it again") {
        try standby.query("SELECT lsn FROM dendro.head") == "2"
      }
      try await eventually("writes are taken again") { first.engine?.writeRefusal == nil }
      try await first.reference(withPath: "b").setValue(3)
      try await eventually("the second has all") { second.clusterStatus?.lsn == 3 }
      #expect(second.root == first.root)
      try await first.close()
      try await second.close()
      return
    }
    try await eventually("the second stops") {
      if case .stopped? = second.clusterStatus?.role { true } else { false }
    }
    // What was acknowledged is still shown, and nothing is written.
    #expect(try await second.value("a") == 2)
    let refusal = await #expect(throws: DatabaseError.self) {
      try await second.reference(withPath: "a").setValue(3)
    }
    #expect(refusal?.code == .unavailable)
    #expect(refusal?.message.contains("set back") == true)
    try await second.close()
    for name in ["1", "2"] {
      let error = #expect(throws: DatabaseError.self) { try cluster.open(name) }
      #expect(error?.code == .corrupt)
      #expect(error?.message.contains("set back") == true)
    }
  }

  @Test("a leader whose directory is removed stops, and another one leads with all that it had")
  func removedDirectory() async throws {
    let databases = [try cluster.open("1"), try cluster.open("2")]
    let counting = Counting(databases)
    try await hasCounted(counting, 50)
    try FileManager.default.removeItem(atPath: cluster.directory("1"))
    try await eventually("the second leads") { databases[1].isLeader }
    try await hasCounted(counting, 50)
    await counting.end()
    try await eventually("the first stops") {
      if case .stopped? = databases[0].clusterStatus?.role { true } else { false }
    }
    try await check(counting, [databases[1]])
    for database in databases { try? await database.close() }
    let again = try cluster.open("1")
    #expect(again.root == databases[1].root)
    try await again.close()
  }

  @Test("of two servers with copies of one directory one stops and says so, and the other goes on")
  func copiedDirectory() async throws {
    let first = try cluster.open("1")
    try await first.reference(withPath: "a").setValue(1)
    try await first.close()
    try FileManager.default.copyItem(atPath: cluster.directory("1"), toPath: cluster.directory("2"))
    let twins = [try cluster.open("1"), try cluster.open("2")]
    func stopped() -> Int? {
      twins.firstIndex { if case .stopped? = $0.clusterStatus?.role { true } else { false } }
    }
    try await eventually("one stops") { stopped() != nil }
    let index = try #require(stopped())
    guard case .stopped(let reason)? = twins[index].clusterStatus?.role else { return }
    #expect(reason.contains("another process goes by the name of this server"), "\(reason)")
    let other = twins[1 - index]
    try await eventually("the other one leads") { other.isLeader }
    try await other.reference(withPath: "a").setValue(2)
    try await eventually("it leads for good") { other.clusterStatus?.trouble == nil }
    #expect(other.isLeader)
    try await other.close()
    try? await twins[index].close()
    // As the reason says.
    try FileManager.default.removeItem(atPath: cluster.directory("\(index + 1)"))
    let again = try cluster.open("\(index + 1)")
    #expect(try await again.value("a") == 2)
    try await again.close()
  }

  @Test("closing does not wait for ever for an answer")
  func closing() async throws {
    let proxy = try PostgresProxy(to: cluster.postgres.port)
    cluster.address = proxy.address
    let database = try cluster.open("1")
    try await database.reference(withPath: "a").setValue(1)
    proxy.set(.held)
    let write = Task { try await database.reference(withPath: "a").setValue(2) }
    try await eventually("the write is made") { database.engine?.head.lsn.rawValue == 2 }
    await #expect(throws: DatabaseError.self) { try await database.close() }
    let error = await #expect(throws: DatabaseError.self) { try await write.value }
    #expect(error?.code == .pending)
  }
}
