import DendroPlatform
import DendroTestSupport
import Foundation
import Testing

@testable import DendroCluster

@Suite("Connections to PostgreSQL", .enabled(if: PostgresServer.isInstalled, "needs PostgreSQL"))
struct PostgresConnectionTests {
  private let server: PostgresServer
  private let interruption: Interruption

  init() throws {
    server = try PostgresServer()
    interruption = try Interruption()
  }

  private func connect(_ address: String? = nil, _ timeout: Duration = .seconds(10))
    throws(PostgresError) -> PostgresConnection
  {
    try PostgresConnection(address ?? server.address, timeout: timeout, interruption: interruption)
  }

  private func failure(_ body: () throws(PostgresError) -> Void) -> PostgresError? {
    do throws(PostgresError) {
      try body()
      return nil
    } catch {
      return error
    }
  }

  @Test("values come back as they were sent, and errors name their state")
  func values() throws {
    let connection = try connect()
    let bytes = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for number in [Int64.min, -1, 0, 1, .max] {
      let rows = try connection.execute(
        "SELECT $1, $2, $3, NULL::bigint", [.integer(number), .bytes(bytes), .text("é 😀 ''")],
        timeout: .seconds(20))
      #expect(rows.count == 1)
      #expect(try rows.integer(0, 0) == number)
      #expect(try rows.bytes(0, 1) == bytes)
      #expect(try rows.text(0, 2) == "é 😀 ''")
      #expect(rows.isNull(0, 3))
      #expect(throws: PostgresError.self) { try rows.integer(0, 3) }
      #expect(throws: PostgresError.self) { try rows.integer(0, 1) }
      #expect(throws: PostgresError.self) { try rows.integer(1, 0) }
      #expect(throws: PostgresError.self) { try rows.integer(0, 4) }
    }
    let empty = try connection.execute(
      "SELECT $1, $2", [.bytes([]), .text("")], timeout: .seconds(5))
    #expect(try empty.bytes(0, 0) == [])
    #expect(try empty.text(0, 1) == "")
    try connection.executeScript(
      "CREATE TABLE a (b bigint); INSERT INTO a VALUES (1), (2)", timeout: .seconds(5))
    let changed = try connection.execute("UPDATE a SET b = b + 1", timeout: .seconds(5))
    #expect(changed.affectedCount == 2)
    // A refused statement leaves the connection usable.
    let refused = failure { () throws(PostgresError) in
      _ = try connection.execute("SELECT 1 / 0", timeout: .seconds(5))
    }
    #expect(refused == .refused(state: "22012", message: "division by zero"))
    let unknown = failure { () throws(PostgresError) in
      _ = try connection.execute("SELECT c FROM nothing", timeout: .seconds(5))
    }
    guard case .refused("42P01", _)? = unknown else {
      Issue.record("expected no such table, found \(String(describing: unknown))")
      return
    }
    #expect(connection.isUsable)
    #expect(try connection.execute("SELECT b FROM a", timeout: .seconds(5)).count == 2)
    // A connection that is ended is no refusal.
    let ended = failure { () throws(PostgresError) in
      _ = try connection.execute(
        "SELECT pg_terminate_backend(pg_backend_pid())", timeout: .seconds(5))
    }
    guard case .lost? = ended else {
      Issue.record("expected a lost connection, found \(String(describing: ended))")
      return
    }
    #expect(!connection.isUsable)
  }

  @Test("addresses without a server, and addresses that are none, are told without the password")
  func addresses() throws {
    for address in [
      "postgresql://user:secret@127.0.0.1:1/db", "postgresql://user:secret@[::1", "secret=secret",
      "host=127.0.0.1 port=1 password=secret", "postgresql://u:secret@127.0.0.1:bad/secret",
    ] {
      let found = failure { () throws(PostgresError) in _ = try connect(address) }
      switch found {
      case .unreachable(let text), .badAddress(let text):
        #expect(!text.contains("secret"), "\(text)")
      default: Issue.record("\(address): \(String(describing: found))")
      }
    }
  }

  @Test("without an answer the outcome is not known: a time-out, an interruption, a killed server")
  func undecided() throws {
    let slow = try connect()
    let timedOut = failure { () throws(PostgresError) in
      _ = try slow.execute("SELECT pg_sleep(60)", timeout: .milliseconds(50))
    }
    #expect(timedOut == .timedOut(.milliseconds(50)))
    #expect(!slow.isUsable)
    let again = failure { () throws(PostgresError) in
      _ = try slow.execute("SELECT 1", timeout: .seconds(5))
    }
    #expect(again?.isUndecided == true)

    let frozen = try connect()
    server.freeze(true)
    let stopped = failure { () throws(PostgresError) in
      _ = try frozen.execute("SELECT 1", timeout: .milliseconds(50))
    }
    server.freeze(false)
    #expect(stopped == .timedOut(.milliseconds(50)))

    let killed = try connect()
    let server = server
    let started = try #require(Int(try server.query("SELECT 1")))
    #expect(started == 1)
    Thread.detachNewThread { [interruption] in
      usleep(50_000)
      interruption.set()
    }
    let interrupted = failure { () throws(PostgresError) in
      _ = try killed.execute("SELECT pg_sleep(60)", timeout: .seconds(50))
    }
    #expect(interrupted == .interrupted)
    #expect(failure { () throws(PostgresError) in _ = try connect() } == .interrupted)
  }

  @Test("an error that ends the connection leaves the outcome open, others do not")
  func ended() throws {
    let connection = try connect()
    let refused = failure { () throws(PostgresError) in
      _ = try connection.execute("SELECT 1 / 0", timeout: .seconds(5))
    }
    #expect(refused?.isUndecided == false)
    #expect(connection.isUsable)
    let ended = failure { () throws(PostgresError) in
      _ = try connection.execute(
        "SELECT pg_terminate_backend(pg_backend_pid())", timeout: .seconds(5))
    }
    #expect(ended?.isUndecided == true)
    #expect(!connection.isUsable)
  }

  @Test("a killed server is a lost connection, and so is one whose wait for standbys was cancelled")
  func lost() throws {
    let waiting = try connect()
    try waiting.executeScript("CREATE TABLE a (b bigint)", timeout: .seconds(5))
    let pid = try waiting.execute("SELECT pg_backend_pid()::bigint", timeout: .seconds(5))
      .integer(0, 0)
    try server.setSynchronousStandbys("missing", waits: false)
    let address = server.address
    Thread.detachNewThread {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: (PostgresServer.programs ?? "") + "/psql")
      process.arguments = [
        "-X", "-q", "-d", address, "-c",
        """
        DO $$ BEGIN LOOP
          PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = \(pid) AND wait_event = 'SyncRep';
          EXIT WHEN FOUND; PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot();
        END LOOP; END $$
        """,
      ]
      process.standardOutput = FileHandle.nullDevice
      try? process.run()
    }
    let unreplicated = failure { () throws(PostgresError) in
      _ = try waiting.execute("INSERT INTO a VALUES (1)", timeout: .seconds(30))
    }
    guard case .unreplicated? = unreplicated else {
      Issue.record("expected a warning, found \(String(describing: unreplicated))")
      return
    }
    #expect(!waiting.isUsable)

    let connection = try connect()
    let pids = try server.query(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'dendro'")
    #expect(!pids.isEmpty)
    server.kill()
    let lost = failure { () throws(PostgresError) in
      _ = try connection.execute("SELECT 1", timeout: .seconds(5))
    }
    guard case .lost? = lost else {
      Issue.record("expected a lost connection, found \(String(describing: lost))")
      return
    }
  }
}
