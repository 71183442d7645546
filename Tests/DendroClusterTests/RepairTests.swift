import Dendro
import DendroEngine
import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroCluster

@Suite(
  "A PostgreSQL that was set back, and an operator",
  .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct RepairTests {
  private let cluster: TestCluster

  init() throws { cluster = try TestCluster() }

  /// Keeps what PostgreSQL has now, for `setBack()`.
  private func keep() throws {
    try cluster.postgres.query(
      """
      DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept;
      CREATE TABLE kept.head AS TABLE dendro.head; CREATE TABLE kept.log AS TABLE dendro.log
      """)
  }

  /// As a restore from a backup that was taken at `keep()`.
  private func setBack() throws {
    try cluster.postgres.query(
      """
      BEGIN; DELETE FROM dendro.head; DELETE FROM dendro.log;
      INSERT INTO dendro.head TABLE kept.head; INSERT INTO dendro.log TABLE kept.log;
      DELETE FROM dendro.checkpoint; DELETE FROM dendro.server; COMMIT
      """)
  }

  /// A server has writes 1 to 5, and is closed; PostgreSQL has 1 and 2.
  private func lost() async throws {
    let database = try cluster.open("1")
    for number in 1...2 { try await database.reference(withPath: "n\(number)").setValue(number) }
    try keep()
    for number in 3...5 { try await database.reference(withPath: "n\(number)").setValue(number) }
    try await database.close()
    try setBack()
  }

  private func repair(_ name: String = "1") throws(RepairFailure) -> ClusterRepair {
    try ClusterRepair(cluster.directory(name), address: cluster.postgres.address) { settings in
      settings.beatInterval = .milliseconds(100)
      settings.takeoverDelay = .seconds(3)
      settings.statementTimeout = .seconds(2)
    }
  }

  /// The reason for which a repair is refused.
  private func refusal(_ body: () throws -> Void) -> String {
    do {
      try body()
    } catch {
      switch error as? RepairFailure {
      case .refused(let reason): return reason
      case .failed(let error): return error.message
      case nil: return "another error: \(error)"
      }
    }
    return "it was not refused"
  }

  /// Waits until a server stops, and gives its reason.
  private func stopReason(of database: Database) async throws -> String {
    var reason = ""
    try await eventually("the server stops") {
      guard case .stopped(let text)? = database.clusterStatus?.role else { return false }
      reason = text
      return true
    }
    return reason
  }

  private func head() throws -> String { try cluster.postgres.query("SELECT lsn FROM dendro.head") }

  @Test("what PostgreSQL has lost is put back, and all servers have it")
  func restore() async throws {
    try await lost()
    let error = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    let message = try #require(error?.message)
    #expect(message.contains("3 writes are in question, 3 to 5"), "\(message)")
    #expect(message.contains("'dendro cluster restore \(cluster.directory("1"))'"), "\(message)")
    #expect(message.contains("'dendro cluster accept-loss \(cluster.directory("1"))'"))

    let repair = try repair()
    #expect(repair.namespace == "shop")
    let question = try #require(repair.question)
    #expect(question.sharedLSN == 2)
    #expect(question.writes == 3...5)
    #expect(question.obstacle == nil)
    #expect(try head() == "2")
    #expect(try repair.restore() == 3)
    #expect(try head() == "5")
    repair.close()
    // No leader is left that would have to be waited for.
    #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.server") == "0")
    #expect(try cluster.postgres.query("SELECT length(leader) FROM dendro.head") == "0")

    let fresh = try cluster.open("2")
    for number in 1...5 { #expect(try await fresh.value("n\(number)") == number) }
    let again = try cluster.open("1")
    try await again.reference(withPath: "n6").setValue(6)
    #expect(again.root == fresh.root)
    #expect(fresh.clusterStatus?.lsn == 6)
    try await again.close()
    try await fresh.close()

    let later = try self.repair()
    #expect(later.question == nil)
    #expect(refusal { _ = try later.restore() }.contains("no write is in question"))
    #expect(refusal { _ = try later.acceptLoss() }.contains("no write is in question"))
    later.close()
  }

  @Test(
    "writes are put back although the directory has lost the next, which is named",
    arguments: [1, 3] as [UInt64])
  func lostByBoth(count: UInt64) async throws {
    let database = try cluster.open("1")
    for number in 1...2 { try await database.reference(withPath: "n\(number)").setValue(number) }
    try keep()
    let last = 2 + count
    for number in 3...last { try await database.reference(withPath: "n\(number)").setValue(number) }
    let data = CopyFile.dataDirectory(in: cluster.directory("1"))
    let kept = data + "-kept"
    try FileManager.default.copyItem(atPath: data, toPath: kept)
    try await database.reference(withPath: "lost").setValue(1)
    try await database.close()
    try setBack()
    // As after a power loss: the copy's log was not synchronized.
    try FileManager.default.removeItem(atPath: data)
    try FileManager.default.moveItem(atPath: kept, toPath: data)

    let error = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    let message = try #require(error?.message)
    #expect(message.contains("this directory has lost write \(last + 1) after"), "\(message)")
    let repair = try repair()
    let question = try #require(repair.question)
    #expect(question.writes == 3...last)
    #expect(question.lost == last + 1...last + 1)
    #expect(question.obstacle == nil)
    #expect(try repair.restore() == Int(count))
    repair.close()
    #expect(try head() == "\(last)")
    // The server goes on behind what was put back.
    let again = try cluster.open("1")
    #expect(try await again.value("n\(last)") == Int(last))
    #expect(try await again.value("lost") == nil)
    try await again.reference(withPath: "next").setValue(1)
    #expect(again.clusterStatus?.lsn == last + 1)
    try await again.close()
  }

  @Test("a PostgreSQL that has lost all of the namespace gets it back")
  func restoreAll() async throws {
    let database = try cluster.open("shop")
    try await database.reference(withPath: "a").setValue(1)
    try await database.close()
    try cluster.postgres.query("DELETE FROM dendro.head; DELETE FROM dendro.log")
    let repair = try repair("shop")
    #expect(repair.question?.writes == 1...1)
    #expect(try repair.restore() == 1)
    repair.close()
    let fresh = try cluster.open("2", namespace: "shop")
    #expect(try await fresh.value("a") == 1)
    try await fresh.close()
  }

  @Test("if PostgreSQL has gone on with other writes, none is put there, and it says since when")
  func other() async throws {
    try await lost()
    let second = try cluster.open("2")
    for number in 1...4 { try await second.reference(withPath: "other").setValue(number) }
    try await second.close()
    let before = try cluster.postgres.query("SELECT lsn, epoch, chain FROM dendro.head")
    let repair = try repair()
    let question = try #require(repair.question)
    #expect(question.writes == 3...5)
    #expect(question.obstacle == "PostgreSQL has other writes from write 3 on")
    #expect(
      refusal { _ = try repair.restore() }.contains("PostgreSQL has other writes from write 3 on"))
    repair.close()
    #expect(try cluster.postgres.query("SELECT lsn, epoch, chain FROM dendro.head") == before)
    let error = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    #expect(error?.message.contains("other writes from write 3 on") == true)
  }

  @Test("another log is told from the copy also if none of its batches ends where the copy does")
  func spanning() async throws {
    try await lost()
    let second = try cluster.open("2")
    for number in 1...4 { try await second.reference(withPath: "other").setValue(number) }
    try await second.close()
    try join(4...6)
    let repair = try repair()
    let question = try #require(repair.question)
    #expect(question.writes == 3...5)
    #expect(question.obstacle == "PostgreSQL has other writes from write 3 on")
    repair.close()
    let error = #expect(throws: DatabaseError.self) { try cluster.open("1") }
    #expect(error?.message.contains("other writes from write 3 on") == true)
    // One that has the beginning of a batch goes on.
    let third = try cluster.open("2")
    #expect(try await third.value("other") == 4)
    try await third.close()
  }

  /// Makes one batch of those that have a write each.
  private func join(_ writes: ClosedRange<UInt64>) throws {
    var payloads: [[UInt8]] = []
    var times: [Int64] = []
    for lsn in writes {
      let text = try cluster.postgres.query(
        "SELECT encode(body, 'hex') FROM dendro.log WHERE last = \(lsn)")
      let digits = Array(text)
      let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
        UInt8(String(digits[$0...$0 + 1]), radix: 16)
      }
      try BatchBody.decode(bytes, firstLSN: LogSequenceNumber(lsn)) { records in
        for record in records {
          payloads.append(Array(record.payload))
          times.append(record.baseTime)
        }
      }
    }
    let all = payloads.flatMap(\.self)
    let body = all.withUnsafeBytes { all in
      var start = 0
      return BatchBody.encode(
        payloads.indices.map { index in
          defer { start += payloads[index].count }
          return SharedRecord(
            firstLSN: LogSequenceNumber(writes.lowerBound + UInt64(index)), count: 1,
            baseTime: times[index],
            payload: UnsafeRawBufferPointer(
              rebasing: all[start..<start + payloads[index].count]))
        })
    }
    let text = body.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    try cluster.postgres.query(
      """
      DELETE FROM dendro.log WHERE last >= \(writes.lowerBound) AND last < \(writes.upperBound);
      UPDATE dendro.log SET first = \(writes.lowerBound), size = \(body.count), body = decode('\(text)', 'hex')
        WHERE last = \(writes.upperBound)
      """)
  }

  @Test("while another server leads, nothing is put back; once it is gone, it is")
  func led() async throws {
    try await lost()
    let second = try cluster.open("2")
    try await eventually("the second leads") { second.isLeader }
    let repair = try repair()
    let reason = refusal { _ = try repair.restore() }
    #expect(reason.contains("a server leads"), "\(reason)")
    #expect(try head() == "2")
    try await second.close()
    // As one that was killed: its row stands still.
    try cluster.postgres.query(
      """
      INSERT INTO dendro.server (id, namespace, counter, lsn, address, opening)
        VALUES ('\\x0102', 'shop', 7, 2, '', '\\x');
      UPDATE dendro.head SET leader = '\\x0102'
      """)
    let started = ContinuousClock.now
    #expect(try repair.restore() == 3)
    #expect(ContinuousClock.now - started >= .milliseconds(600))
    repair.close()
    #expect(try head() == "5")
  }

  @Test(
    "a server that comes to lead while writes are put back ends that; it says which are missing")
  func overtaken() async throws {
    try await lost()
    let repair = try repair()
    // As soon as the first write is there.
    try cluster.postgres.query(
      """
      CREATE FUNCTION dendro.overtake() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN UPDATE dendro.head SET epoch = epoch + 1, token = '\\x01'; RETURN NULL; END $$;
      CREATE TRIGGER overtake AFTER INSERT ON dendro.log
        FOR EACH ROW EXECUTE FUNCTION dendro.overtake()
      """)
    let reason = refusal { _ = try repair.restore() }
    #expect(reason.contains("another server leads"), "\(reason)")
    #expect(reason.contains("writes 4 to 5 are not in PostgreSQL"), "\(reason)")
    repair.close()
    try cluster.postgres.query("DROP TRIGGER overtake ON dendro.log")
    // The next attempt puts back the rest.
    let again = try self.repair()
    #expect(again.question?.writes == 4...5)
    again.close()
  }

  @Test("answers that come too late while writes are put back: each write is there once")
  func lateAnswers() async throws {
    try await lost()
    try cluster.postgres.query(
      """
      CREATE FUNCTION dendro.slow() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$;
      CREATE TRIGGER slow AFTER INSERT ON dendro.log FOR EACH ROW EXECUTE FUNCTION dendro.slow()
      """)
    let troubles = Mutex(0)
    let repair = try ClusterRepair(
      cluster.directory("1"), address: cluster.postgres.address
    ) { $0.statementTimeout = .seconds(1) }
    let count = try repair.restore { _, trouble in
      if trouble != nil { troubles.withLock { $0 += 1 } }
    }
    #expect(count == 3)
    #expect(troubles.value > 0)
    repair.close()
    #expect(try head() == "5")
    #expect(try cluster.postgres.query("SELECT count(*) FROM dendro.log") == "5")
    let fresh = try cluster.open("2")
    #expect(try await fresh.value("n5") == 5)
    try await fresh.close()
  }

  @Test("accepting the loss moves the data aside; the server reads all from PostgreSQL")
  func acceptLoss() async throws {
    try await lost()
    let repair = try repair()
    let place = try repair.acceptLoss()
    repair.close()
    #expect(place.hasPrefix(cluster.directory("1") + "/set-aside-"))
    let aside = try Engine.open(at: place, mode: .readOnly)
    #expect(aside.head.lsn.rawValue == 5)
    try await aside.close()
    let database = try cluster.open("1")
    #expect(database.clusterStatus?.lsn == 2)
    try await database.reference(withPath: "n3").setValue(33)
    #expect(try await database.value("n5") == nil)
    try await database.close()
  }

  @Test("a directory that a server uses, or that is another cluster's, is refused")
  func refused() async throws {
    let database = try cluster.open("1")
    try await database.reference(withPath: "a").setValue(1)
    let inUse = refusal { _ = try repair() }
    #expect(inUse.contains("already open in this process"), "\(inUse)")
    try await database.close()
    let own = try await Database.open(at: cluster.directory("own"))
    try await own.close()
    #expect(refusal { _ = try repair("own") }.contains("is not the directory of a server"))
    try cluster.postgres.query(
      "UPDATE dendro.cluster SET id = '\\x00112233445566778899aabbccddeeff'")
    let reason = refusal { _ = try repair() }
    #expect(reason.contains("another cluster"), "\(reason)")
    #expect(reason.contains("it has shop"), "\(reason)")
    try cluster.postgres.query("DROP SCHEMA dendro CASCADE")
    #expect(refusal { _ = try repair() }.contains("no servers share databases"))
    // Nothing is made by asking.
    #expect(
      try cluster.postgres.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'dendro'")
        == "0")
  }

  @Test(
    "a follower that has more than PostgreSQL stops, and says what is in question and what helps")
  func follower() async throws {
    let first = try cluster.open("1")
    let second = try cluster.open("2") { $0.setBackDelay = .milliseconds(300) }
    try await first.reference(withPath: "n1").setValue(1)
    try keep()
    for number in 2...3 { try await first.reference(withPath: "n\(number)").setValue(number) }
    try await eventually("the second has all") { second.clusterStatus?.lsn == 3 }
    try await first.close()
    try setBack()
    let reason = try await stopReason(of: second)
    #expect(reason.hasPrefix("PostgreSQL was set back"), "\(reason)")
    #expect(reason.contains("2 writes are in question, 2 to 3"), "\(reason)")
    #expect(reason.contains("'dendro cluster restore \(cluster.directory("2"))'"), "\(reason)")
    try await second.close()
    let repair = try repair("2")
    #expect(try repair.restore() == 2)
    repair.close()
    // The one that led has the same log.
    let again = try cluster.open("1")
    #expect(try await again.value("n3") == 3)
    try await again.close()
  }

  @Test(
    "a follower takes nothing of another log, whether that ends where its own does or behind it",
    arguments: [2, 5])
  func otherLog(count: Int) async throws {
    let first = try cluster.open("1")
    let line = try PostgresProxy(to: cluster.postgres.port)
    cluster.address = line.address
    let second = try cluster.open("2") { $0.setBackDelay = .milliseconds(300) }
    cluster.address = nil
    try await first.reference(withPath: "n1").setValue(1)
    try keep()
    for number in 2...3 { try await first.reference(withPath: "n\(number)").setValue(number) }
    try await eventually("the second has all") { second.clusterStatus?.lsn == 3 }
    line.set(.closed)
    try await first.close()
    try setBack()
    let third = try cluster.open("3")
    for number in 1...count { try await third.reference(withPath: "other").setValue(number) }
    line.set(.open)
    let reason = try await stopReason(of: second)
    #expect(reason.hasPrefix("PostgreSQL was set back: at write"), "\(reason)")
    #expect(second.root.node(at: try Path(parsing: "other")).isEmpty)
    #expect(second.root.node(at: try Path(parsing: "n3")) == Node(.integer(3)))
    try await second.close()
    try await third.close()
  }

  @Test("after a power loss the file has an older position than the log; what that has is put back")
  func olderPosition() async throws {
    try await lost()
    let chain = try cluster.postgres.query("SELECT chain FROM dendro.log WHERE last = 1")
    let digits = Array(chain.dropFirst(2))
    let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(digits[$0..<($0 + 2)]), radix: 16)
    }
    let older = LogPosition(lsn: LogSequenceNumber(1), chain: try #require(LogChain(bytes: bytes)))
    let copy = try CopyFile(at: cluster.directory("1") + "/cluster", newID: [])
    for _ in 0..<2 { copy.note(older) }
    let repair = try repair()
    #expect(repair.question?.writes == 3...5)
    #expect(try repair.restore() == 3)
    repair.close()
    #expect(try head() == "5")
  }

  @Test("a leader that was killed before its copy had the last batch: what it has is put back")
  func killedLeader() async throws {
    try await lost()
    // The file says that there was one write more, as the leader notes it before it writes its copy.
    let copy = try CopyFile(at: cluster.directory("1") + "/cluster", newID: [])
    let known = try #require(copy.position)
    var hash = known.chain.bytes
    hash[0] ^= 1
    copy.note(LogPosition(lsn: known.lsn.next, chain: try #require(LogChain(bytes: hash))))
    let repair = try repair()
    #expect(repair.question?.writes == 3...5)
    #expect(repair.question?.obstacle == nil)
    #expect(try repair.restore() == 3)
    repair.close()
  }
}
