#if canImport(CDendroSQLite)
  import CDendroSQLite
  import Foundation

  /// An SQLite database in WAL mode with one table and prepared statements, on one thread. `synchronous` is
  /// NORMAL if writes are buffered, and FULL if they are durable.
  final class SQLite: Peer {
    private let database: OpaquePointer
    private let isDurable: Bool
    private var insertion: OpaquePointer?
    private var selection: OpaquePointer?
    private var beginning: OpaquePointer?
    private var committing: OpaquePointer?

    init(at directory: URL, _ durability: PeerDurability) throws {
      var opened: OpaquePointer?
      let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
      let path = directory.appendingPathComponent("sqlite.db").path
      guard sqlite3_open_v2(path, &opened, flags, nil) == SQLITE_OK, let opened else {
        throw PeerError(peer: "sqlite", message: "cannot open \(path)")
      }
      database = opened
      isDurable = durability == .durable
      try execute("PRAGMA journal_mode = WAL")
      try execute("PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
      try execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")
      insertion = try prepare(
        "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v")
      selection = try prepare("SELECT v FROM kv WHERE k = ?1")
      beginning = try prepare("BEGIN IMMEDIATE")
      committing = try prepare("COMMIT")
    }

    func close() {
      for statement in [insertion, selection, beginning, committing] { sqlite3_finalize(statement) }
      sqlite3_close(database)
    }

    /// A transaction of its own, since none is open.
    func put(_ key: Bytes, _ value: Bytes) throws { try insert(key, value) }

    func get(_ key: Bytes, _ body: (Bytes?) -> Void) throws {
      defer { sqlite3_reset(selection) }
      sqlite3_bind_blob(selection, 1, key.baseAddress, Int32(key.count), nil)
      switch sqlite3_step(selection) {
      case SQLITE_ROW:
        let content = sqlite3_column_blob(selection, 0)
        body(Bytes(start: content, count: Int(sqlite3_column_bytes(selection, 0))))
      case SQLITE_DONE: body(nil)
      default: throw failure
      }
    }

    func batch(_ body: ((Bytes, Bytes) throws -> Void) throws -> Void) throws {
      try step(beginning)
      try body { try insert($0, $1) }
      try step(committing)
    }

    /// A durable transaction makes those before it durable.
    func synchronize() throws {
      try execute("PRAGMA synchronous = FULL")
      try execute("INSERT OR REPLACE INTO kv VALUES (x'00', x'00')")
      if !isDurable { try execute("PRAGMA synchronous = NORMAL") }
    }

    /// The memory of a key or value stays as it is until the step has been done, so SQLite need not copy it.
    private func insert(_ key: Bytes, _ value: Bytes) throws {
      sqlite3_bind_blob(insertion, 1, key.baseAddress, Int32(key.count), nil)
      sqlite3_bind_blob(insertion, 2, value.baseAddress, Int32(value.count), nil)
      try step(insertion)
    }

    private func step(_ statement: OpaquePointer?) throws {
      let status = sqlite3_step(statement)
      sqlite3_reset(statement)
      guard status == SQLITE_DONE else { throw failure }
    }

    private func prepare(_ statement: String) throws -> OpaquePointer {
      var prepared: OpaquePointer?
      let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
      guard sqlite3_prepare_v3(database, statement, -1, flags, &prepared, nil) == SQLITE_OK,
        let prepared
      else { throw failure }
      return prepared
    }

    private func execute(_ statement: String) throws {
      guard sqlite3_exec(database, statement, nil, nil, nil) == SQLITE_OK else { throw failure }
    }

    private var failure: PeerError {
      PeerError(peer: "sqlite", message: String(cString: sqlite3_errmsg(database)))
    }
  }
#endif
