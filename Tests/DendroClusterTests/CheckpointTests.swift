import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite(
  "Checkpoints in PostgreSQL", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct CheckpointTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  // MARK: Helpers

  /// Opens a server that publishes a checkpoint every few writes.
  private func open(
    _ name: String, isPatient: Bool = false,
    adjust: @escaping @Sendable (inout ClusterSettings) -> Void = { _ in }
  ) throws -> Database {
    try cluster.open(name, isPatient: isPatient) { settings in
      settings.checkpointByteMin = 4000
      settings.partByteCount = 256
      settings.publisherDelay = .milliseconds(400)
      adjust(&settings)
    }
  }

  private func number(_ sql: String) throws -> Int {
    try #require(Int(try cluster.postgres.query(sql)))
  }

  /// The first write that the log in PostgreSQL has.
  private func firstLSN() throws -> Int {
    try number("SELECT coalesce(min(first), 0) FROM dendro.log")
  }

  private func checkpointLSNs() throws -> [Int] {
    try cluster.postgres.query("SELECT lsn FROM dendro.checkpoint ORDER BY lsn")
      .split(separator: "\n").compactMap { Int($0) }
  }

  /// Waits for a moment at which no checkpoint is being published, and nothing is to be trimmed.
  ///
  /// - Returns: the two that there were. A server that runs may publish the next one at any time.
  private func settledCheckpointLSNs() async throws -> [Int] {
    var kept: [Int] = []
    try await eventually("two checkpoints are left, their parts, and the log behind them") {
      // One statement sees one moment.
      let found = try cluster.postgres.query(
        """
        SELECT lsn FROM dendro.checkpoint
        WHERE NOT EXISTS (SELECT 1 FROM dendro.publisher)
        AND NOT EXISTS (
          SELECT 1 FROM dendro.checkpoint_part p WHERE NOT EXISTS
            (SELECT 1 FROM dendro.checkpoint c WHERE c.upload = p.upload))
        AND (SELECT min(first) FROM dendro.log) = (SELECT min(lsn) + 1 FROM dendro.checkpoint)
        ORDER BY lsn
        """)
      kept = found.split(separator: "\n").compactMap { Int($0) }
      return kept.count == 2
    }
    return kept
  }

  /// Writes until a condition holds, but not for ever.
  private func write(
    _ database: Database, _ location: SourceLocation = #_sourceLocation,
    until condition: () throws -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + .seconds(180)
    while try !condition() {
      guard .now < deadline else {
        Issue.record("the condition does not come true", sourceLocation: location)
        return
      }
      for _ in 0..<5 {
        let lsn = (database.clusterStatus?.lsn ?? 0) + 1
        try await database.reference(withPath: "items/\(lsn % 50)").setValue(
          ["lsn": Int(lsn), "text": String(repeating: "x", count: Int(lsn % 70))])
      }
    }
  }

  private func setAside(_ name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: cluster.directory(name))
      .filter { $0.hasPrefix("set-aside") }
  }

  private func hasAll(_ database: Database, of leader: Database) async throws {
    let last = leader.clusterStatus?.lsn ?? 0
    try await eventually("it has all") { database.clusterStatus?.lsn == last }
    #expect(database.root == leader.root)
  }

  // MARK: The way it goes

  @Test("the log is trimmed behind the older of two checkpoints, from which a new server starts")
  func trimming() async throws {
    let first = try open("1")
    try await write(first) { try firstLSN() > 1 }
    let kept = try await settledCheckpointLSNs()
    try await write(first) { try checkpointLSNs().first ?? 0 > kept[1] }
    let whole = first.root
    let second = try open("2")
    #expect(second.root == whole)
    #expect((second.engine?.report.checkpointLSN?.rawValue ?? 0) > UInt64(kept[1]))
    try await first.reference(withPath: "last").setValue(1)
    try await hasAll(second, of: first)
    // What the publishing needs is removed, and each copy is one that can be opened alone.
    try await eventually("nothing is left of the publishing") {
      try FileManager.default.contentsOfDirectory(atPath: cluster.directory("1")).sorted()
        == ["cluster", "data"]
    }
    let end = first.root
    try await second.close()
    try await first.close()
    let again = try open("2")
    try await eventually("it leads") { again.isLeader }
    #expect(again.root == end)
    #expect(try setAside("2").isEmpty)
    try await again.close()
  }

  @Test("a follower publishes as well, at the end of a batch")
  func follower() async throws {
    let first = try open("1") { $0.checkpointByteMin = 1 << 40 }
    let second = try open("2")
    try await write(first) { try firstLSN() > 1 }
    try await hasAll(second, of: first)
    let third = try open("3")
    #expect(third.engine?.report.checkpointLSN != nil)
    try await hasAll(third, of: first)
    for database in [third, second, first] { try await database.close() }
  }

  @Test("each acknowledged write is in servers that start while the leader writes on")
  func beside() async throws {
    let first = try open("1")
    let increments = Increments(first)
    for name in ["2", "3", "4"] {
      let before = try checkpointLSNs().last ?? 0
      try await eventually("a checkpoint is published") {
        try checkpointLSNs().last ?? 0 > before
      }
      let atLeast = increments.acknowledgedCount
      let database = try open(name)
      #expect(database.engine?.report.checkpointLSN != nil)
      #expect(try await database.value("count") ?? 0 >= atLeast)
      try await database.close()
    }
    try await increments.end()
    let last = try open("5")
    #expect(try await last.value("count") == increments.acknowledgedCount)
    #expect(last.root == first.root)
    try await last.close()
    try await first.close()
  }

  // MARK: Behind

  @Test("a server whose copy is older than the log moves it aside and starts anew")
  func tooOld() async throws {
    let first = try open("1")
    try await first.reference(withPath: "old").setValue(1)
    let second = try open("2")
    let end = Int(second.clusterStatus?.lsn ?? 0)
    try await second.close()
    try await write(first) { try firstLSN() > end + 1 }
    let again = try open("2")
    #expect(try setAside("2").count == 1)
    #expect(again.engine?.report.checkpointLSN != nil)
    try await hasAll(again, of: first)
    try await again.close()
    // What was read anew is a copy as any other.
    let third = try open("2")
    #expect(try setAside("2").count == 1)
    try await third.close()
    try await first.close()
  }

  @Test("a copy that ends exactly where the log is trimmed goes on")
  func justThere() async throws {
    let first = try open("1") { $0.checkpointByteMin = 1 << 40 }
    let second = try open("2") { $0.checkpointByteMin = 1 }
    try await write(first) { try !checkpointLSNs().isEmpty }
    try await hasAll(second, of: first)
    try await second.close()
    // As if the checkpoint had been taken there, and the one behind it, too.
    let end = Int(first.clusterStatus?.lsn ?? 0)
    try cluster.postgres.query(
      """
      UPDATE dendro.checkpoint c SET lsn = \(end),
        chain = (SELECT chain FROM dendro.log WHERE last = \(end));
      DELETE FROM dendro.log WHERE last <= \(end);
      """)
    try await first.reference(withPath: "last").setValue(1)
    let again = try open("2") { $0.checkpointByteMin = 1 << 40 }
    try await hasAll(again, of: first)
    #expect(try setAside("2").isEmpty)
    try await again.close()
    try await first.close()
  }

  @Test("a follower that was cut off while the log was trimmed stops, and goes on once reopened")
  func cutOff() async throws {
    let first = try open("1")
    let proxy = try PostgresProxy(to: cluster.postgres.port)
    cluster.address = proxy.address
    let second = try open("2", isPatient: true) {
      $0.statementTimeout = .milliseconds(300)
      $0.takeoverDelay = .seconds(3600)
    }
    cluster.address = nil
    proxy.set(.closed)
    proxy.cut()
    let end = Int(second.clusterStatus?.lsn ?? 0)
    try await write(first) { try firstLSN() > end + 1 }
    proxy.set(.open)
    try await eventually("the second stops") {
      if case .stopped(let reason)? = second.clusterStatus?.role {
        reason.contains("open the server again")
      } else {
        false
      }
    }
    try await second.close()
    let again = try open("2")
    try await hasAll(again, of: first)
    try await again.close()
    try await first.close()
  }

  @Test("the log stays for a server that is behind and there, and no longer for one that is gone")
  func laggard() async throws {
    let first = try open("1")
    try await write(first) { (first.clusterStatus?.lsn ?? 0) > 10 }
    try cluster.postgres.query(
      """
      INSERT INTO dendro.server (id, namespace, counter, lsn, address, opening)
      VALUES ('\\x01', 'shop', 1, 7, '', '\\x01')
      """)
    // It is watched from before a checkpoint is published until the trimming behind it.
    try cluster.postgres.query(
      """
      CREATE FUNCTION dendro.beat() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN UPDATE dendro.server SET counter = counter + 1 WHERE id = '\\x01'; RETURN NULL; END $$;
      CREATE TRIGGER beat AFTER INSERT ON dendro.checkpoint
        FOR EACH ROW EXECUTE FUNCTION dendro.beat()
      """)
    // Each checkpoint is published behind the trimming for the one before.
    for _ in 0..<4 {
      let newest = try checkpointLSNs().last ?? 0
      try await write(first) { try checkpointLSNs().last ?? 0 > newest }
    }
    #expect(try number("SELECT count(*) FROM dendro.log WHERE last >= 7 AND first <= 8") == 2)
    try cluster.postgres.query("DROP TRIGGER beat ON dendro.checkpoint")
    try await write(first) { try firstLSN() > 8 }
    try await first.close()
  }

  // MARK: What is damaged or unfinished

  @Test("an upload without its end is not used, and is removed by the next one")
  func abandoned() async throws {
    let first = try open("1")
    try await first.reference(withPath: "a").setValue(1)
    try cluster.postgres.query(
      """
      INSERT INTO dendro.publisher (namespace, upload, server, counter)
        VALUES ('shop', '\\x0102', '\\x0304', 5);
      INSERT INTO dendro.checkpoint_part (namespace, upload, part, body)
        SELECT 'shop', '\\x0102', part, '\\x00' FROM generate_series(0, 99) part;
      """)
    let second = try open("2")
    #expect(second.engine?.report.checkpointLSN == nil)
    #expect(second.root == first.root)
    try await write(first) { try !checkpointLSNs().isEmpty }
    try await eventually("its parts are removed") {
      try number("SELECT count(*) FROM dendro.checkpoint_part WHERE upload = '\\x0102'") == 0
    }
    try await eventually("no upload goes on") {
      try number("SELECT count(*) FROM dendro.publisher WHERE upload = '\\x0102'") == 0
    }
    try await second.close()
    try await first.close()
  }

  @Test("a server that has lost the right to publish sends nothing, and removes nothing")
  func overtaken() throws {
    var settings = ClusterSettings(
      address: cluster.postgres.address, namespace: "shop",
      serverID: ServerID(bytes: Array(repeating: 1, count: 16)))
    settings.statementTimeout = .seconds(10)
    let session = try ClusterSession(
      settings, try Interruption(), newClusterID: Array(repeating: 7, count: 16))
    let (old, new) = ([UInt8](repeating: 1, count: 16), [UInt8](repeating: 2, count: 16))
    #expect(try session.beginUpload(old, by: settings.serverID, insteadOf: nil))
    #expect(try !session.beginUpload(new, by: settings.serverID, insteadOf: nil))
    let seen = try #require(try session.publisher())
    #expect(try session.send([1], 0, of: old))
    // It goes on, so that what was seen before does not count.
    #expect(try !session.beginUpload(new, by: settings.serverID, insteadOf: seen))
    let still = try #require(try session.publisher())
    #expect(try session.beginUpload(new, by: settings.serverID, insteadOf: still))
    #expect(try !session.send([1], 1, of: old))
    #expect(try !session.goOn(old))
    #expect(try session.send([2], 0, of: new))
    #expect(try !session.removeParts(during: old))
    let position = LogPosition(
      lsn: LogSequenceNumber(1), chain: LogChain(of: session.clusterID, "shop"))
    for upload in [old, new] {
      // The second one is of a log that PostgreSQL does not have.
      let checkpoint = PublishedCheckpoint(
        upload: upload, position: position, partCount: 1, byteCount: 1, hash: [])
      #expect(try !session.complete(checkpoint))
    }
    try session.endUpload(old)
    #expect(try session.publisher()?.upload == new)
    #expect(try session.removeParts(during: new))
    #expect(try session.part(0, of: new) == nil)
    try session.endUpload(new)
    #expect(try session.publisher() == nil)
  }

  @Test("of a damaged checkpoint the older one serves; if all are damaged, the error says so")
  func damaged() async throws {
    let first = try open("1")
    try await write(first) { try firstLSN() > 1 }
    try await first.close()
    // The server may have been closed between a checkpoint and the trimming behind it.
    try cluster.postgres.query(
      """
      DELETE FROM dendro.checkpoint
      WHERE lsn NOT IN (SELECT lsn FROM dendro.checkpoint ORDER BY lsn DESC LIMIT 2)
      """)
    let kept = try checkpointLSNs()
    try #require(kept.count == 2)
    let writer = try open("1") { $0.checkpointByteMin = 1 << 40 }
    func upload(_ lsn: Int) -> String {
      "upload = (SELECT upload FROM dendro.checkpoint WHERE lsn = \(lsn))"
    }
    // A bit of a part.
    try cluster.postgres.query(
      """
      UPDATE dendro.checkpoint_part SET body = set_bit(body, 77, 1 - get_bit(body, 77))
      WHERE part = 1 AND \(upload(kept[1]))
      """)
    let second = try cluster.open("2")
    #expect(second.engine?.report.checkpointLSN?.rawValue == UInt64(kept[0]))
    try await hasAll(second, of: writer)
    try await second.close()
    // A part that is missing.
    try cluster.postgres.query(
      "DELETE FROM dendro.checkpoint_part WHERE part = 0 AND \(upload(kept[0]))")
    let error = #expect(throws: DatabaseError.self) { try open("3") }
    #expect(error?.code == .corrupt)
    #expect(error?.message.contains("the checkpoint at write") == true)
    #expect(
      !FileManager.default.fileExists(atPath: cluster.directory("3") + "/data"))
    try await writer.close()
  }

  @Test("whether a batch stands is not known once the log is trimmed beyond it")
  func standing() async throws {
    let first = try open("1")
    try await write(first) { try firstLSN() > 1 }
    try await first.close()
    let settings = ClusterSettings(
      address: cluster.postgres.address, namespace: "shop",
      serverID: ServerID(bytes: Array(repeating: 1, count: 16)))
    let session = try ClusterSession(
      settings, try Interruption(), newClusterID: Array(repeating: 7, count: 16))
    let head = try session.head()
    func batch(_ lsn: UInt64, _ chain: LogChain) -> SharedBatch {
      let start = LogPosition(lsn: .zero, chain: LogChain(of: session.clusterID, "shop"))
      return SharedBatch(
        epoch: head.epoch, before: start,
        after: LogPosition(lsn: LogSequenceNumber(lsn), chain: chain), body: [])
    }
    let end = head.position
    #expect(try session.stands(batch(1, end.chain)) == nil)
    #expect(try session.stands(batch(end.lsn.rawValue, end.chain)) == true)
    #expect(
      try session.stands(batch(end.lsn.rawValue, LogChain(of: session.clusterID, "shop"))) == false)
    #expect(try session.stands(batch(end.lsn.rawValue + 1, end.chain)) == false)
    try cluster.postgres.query("DELETE FROM dendro.log")
    #expect(try session.stands(batch(end.lsn.rawValue, end.chain)) == nil)
    #expect(try session.stands(batch(end.lsn.rawValue + 1, end.chain)) == false)
  }
}

/// Increments one number, from several tasks, until told to end.
private final class Increments: Sendable {
  private let isEnded = Atomic<Bool>(false)
  private let acknowledged = Atomic<Int>(0)
  private let tasks = Mutex<[Task<Void, any Error>]>([])

  var acknowledgedCount: Int { acknowledged.load(ordering: .relaxed) }

  init(_ database: Database) {
    for _ in 0..<4 {
      let task = Task.detached { [self] in
        while !isEnded.load(ordering: .relaxed) {
          try await database.reference(withPath: "count").setValue(ServerValue.increment(1))
          acknowledged.add(1, ordering: .relaxed)
        }
      }
      tasks.withLock { $0.append(task) }
    }
  }

  func end() async throws {
    isEnded.store(true, ordering: .relaxed)
    for task in tasks.withLock({ $0 }) { try await task.value }
  }
}
