import Dendro
import DendroEngine
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite(
  "All servers compared at one write",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct VerificationTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  /// On a thread of its own, since it waits.
  private func verify(
    _ namespace: String = "shop", patience: Duration = .seconds(60)
  ) async throws -> ClusterVerification {
    let address = cluster.postgres.address
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            try ClusterVerification.run(namespace, address: address, patience: patience)
          })
      }
    }
  }

  /// Writes at all servers until it is ended.
  private final class Writing: Sendable {
    private let isEnded = Atomic<Bool>(false)
    private let tasks: Mutex<[Task<Void, Never>]> = Mutex([])

    init(at databases: [Database]) {
      for (number, database) in databases.enumerated() {
        let task = Task.detached { [self] in
          var count = 0
          while !isEnded.load(ordering: .relaxed) {
            count += 1
            _ = try? await database.reference(withPath: "busy/\(number)/\(count % 50)").setValue(
              count)
          }
        }
        tasks.withLock { $0.append(task) }
      }
    }

    func end() async {
      isEnded.store(true, ordering: .relaxed)
      for task in tasks.withLock({ $0 }) { await task.value }
    }
  }

  @Test("servers that are idle agree, and their hashes are those of what they show")
  func idle() async throws {
    let databases = try ["1", "2"].map { try cluster.open($0) }
    try await databases[0].reference(withPath: "a").setValue(["x": 1, "y": "text"])
    try await eventually("the second has it") { databases[1].clusterStatus?.lsn == 1 }
    let found = try await verify()
    #expect(found.verdict == .agree)
    #expect(found.lsn == 1)
    #expect(found.servers.count == 2)
    for (database, server) in zip(databases, databases.map { $0.clusterStatus?.server }) {
      let answer = try #require(found.servers.first { $0.name == server })
      #expect(answer.hash == CheckpointCoding.contentHash(of: database.root))
    }
    // Nothing of it is left.
    for table in ["verification", "verified"] {
      #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.\(table)") == "0")
    }
    for database in databases { try await database.close() }
  }

  @Test("servers that write all the time agree", arguments: [true, false])
  func busy(showsAtOnce: Bool) async throws {
    let databases = try ["1", "2", "3"].map { try cluster.open($0, showsAtOnce: showsAtOnce) }
    let writing = Writing(at: databases)
    try await eventually("they write") { (databases[2].clusterStatus?.lsn ?? 0) > 100 }
    let before = databases[0].clusterStatus?.lsn ?? 0
    for _ in 0..<2 {
      let found = try await verify()
      #expect(found.verdict == .agree)
      #expect(found.servers.count == 3)
      #expect(found.lsn > before)
    }
    await writing.end()
    for database in databases { try await database.close() }
  }

  /// A server that is only rows: its counter moves.
  private final class Pretender: Sendable {
    private let isEnded = Atomic<Bool>(false)
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Returns once the server is there.
    ///
    /// - Parameter answer: a statement that is given again and again.
    init(_ postgres: PostgresServer, _ answer: String) throws {
      // Its tests use it only to ask as well.
      nonisolated(unsafe) let postgres = postgres
      let beat = """
        INSERT INTO dendro.server (id, namespace, counter, lsn, address, opening)
        VALUES ('\\xaa', 'shop', 1, 0, 'http://pretender', '\\x')
        ON CONFLICT (id) DO UPDATE SET counter = dendro.server.counter + 1; \(answer)
        """
      try postgres.query(beat)
      let work = Task.detached { [self] in
        while !isEnded.load(ordering: .relaxed) {
          _ = try? postgres.query(beat)
          try? await Task.sleep(for: .milliseconds(20))
        }
      }
      task.withLock { $0 = work }
    }

    func end() async {
      isEnded.store(true, ordering: .relaxed)
      await task.value?.value
    }
  }

  @Test("a server that has something else is found, and one that does not answer")
  func differs() async throws {
    let database = try cluster.open("1")
    try await database.reference(withPath: "a").setValue(1)
    let silent = try Pretender(cluster.postgres, "")
    let incomplete = try await verify()
    #expect(incomplete.verdict == .incomplete)
    #expect(incomplete.servers.map { $0.hash != nil }.sorted { !$0 && $1 } == [false, true])
    await silent.end()
    let other = try Pretender(
      cluster.postgres,
      """
      INSERT INTO dendro.verified (namespace, request, server, kind, lsn, data, system)
      SELECT namespace, request, '\\xaa', CASE WHEN lsn < 0 THEN 0 ELSE 2 END, lsn, 1, 1
      FROM dendro.verification
      ON CONFLICT (namespace, request, server) DO UPDATE SET kind = excluded.kind, lsn = excluded.lsn
      """)
    let found = try await verify()
    #expect(found.verdict == .differ)
    #expect(found.servers.first { $0.address == "http://pretender" }?.hash == 1)
    await other.end()
    let output = try dendro("cluster", "verify", "shop", cluster.postgres.address)
    // The pretender stands still now.
    #expect(output.status == 0, "\(output.output)")
    #expect(output.output.contains("there is no other server to compare it with"))
    try await database.close()
    #expect(try dendro("cluster", "verify", "shop", cluster.postgres.address).status == 69)
    #expect(try dendro("cluster", "verify", "none", cluster.postgres.address).status == 1)
  }

  private static let newTables =
    "dendro.verification, dendro.verified, dendro.move, dendro.drain, dendro.place"

  @Test("a schema of the release before gets the tables, whoever comes first")
  func olderSchema() async throws {
    let first = try cluster.open("1")
    try await first.reference(withPath: "a").setValue(1)
    try cluster.postgres.query("DROP TABLE \(Self.newTables)")
    try await eventually("the server makes them") {
      try cluster.postgres.query(
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'dendro' AND tablename IN ('verification', 'verified', 'move', 'drain', 'place')"
      ) == "5"
    }
    #expect(try await verify().verdict == .agree)
    try await first.close()
    try cluster.postgres.query("DROP TABLE \(Self.newTables)")
    await #expect(throws: RepairFailure.self) { _ = try await verify() }
    #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.verification") == "0")
  }

  @Test("a server whose role may not make or read the tables goes on without them")
  func leastPrivileges() async throws {
    let first = try cluster.open("1")
    try await first.reference(withPath: "a").setValue(1)
    try await first.close()
    try cluster.postgres.query(
      """
      DROP TABLE \(Self.newTables);
      CREATE ROLE limited LOGIN; GRANT USAGE ON SCHEMA dendro TO limited;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA dendro TO limited
      """)
    cluster.address = cluster.postgres.address.replacing("postgres@", with: "limited@")
    let second = try cluster.open("2")
    try await eventually("it leads") { second.isLeader }
    try await second.reference(withPath: "a").setValue(2)
    #expect(second.clusterStatus?.trouble == nil)
    // The command makes the tables, to which the server has no right.
    do {
      _ = try await verify()
      Issue.record("it has answered")
    } catch {
      guard case .failed(let failure)? = error as? RepairFailure else { throw error }
      #expect(failure.code == .unavailable)
    }
    try await second.reference(withPath: "a").setValue(3)
    #expect(second.clusterStatus?.trouble == nil)
    try await second.close()
    try cluster.postgres.query(
      "GRANT SELECT, INSERT, UPDATE, DELETE ON \(Self.newTables) TO limited")
    let third = try cluster.open("3")
    #expect(try await verify().verdict == .agree)
    try await third.close()
  }
}
