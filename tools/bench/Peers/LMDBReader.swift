#if canImport(CDendroLMDB)
  import CDendroLMDB

  /// A transaction that reads and its cursor, which are reset and renewed rather than made anew, as LMDB's
  /// documentation advises. One thread uses them.
  final class LMDBReader {
    private let transaction: OpaquePointer
    private let cursor: OpaquePointer
    private let database: MDB_dbi

    init(_ lmdb: LMDB) throws {
      var begun: OpaquePointer?
      try LMDB.check(mdb_txn_begin(lmdb.environment, nil, UInt32(MDB_RDONLY), &begun))
      guard let begun else { throw PeerError(peer: "lmdb", message: "no transaction") }
      var opened: OpaquePointer?
      try LMDB.check(mdb_cursor_open(begun, lmdb.entries, &opened))
      guard let opened else { throw PeerError(peer: "lmdb", message: "no cursor") }
      transaction = begun
      cursor = opened
      database = lmdb.entries
      reset()
    }

    func close() {
      mdb_cursor_close(cursor)
      mdb_txn_abort(transaction)
    }

    func renew() throws {
      try LMDB.check(mdb_txn_renew(transaction))
      try LMDB.check(mdb_cursor_renew(transaction, cursor))
    }

    func reset() { mdb_txn_reset(transaction) }

    func get(_ key: Bytes) throws -> Bytes? { try LMDB.get(key, in: database, transaction) }

    /// Calls `body` with so many values, from a key on.
    func values(from first: Bytes, _ count: Int, _ body: (Bytes) -> Void) throws {
      var key = MDB_val(first)
      var value = MDB_val()
      try LMDB.check(mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE))
      body(value.bytes)
      for _ in 1..<count {
        try LMDB.check(mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
        body(value.bytes)
      }
    }
  }
#endif
