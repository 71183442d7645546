#if canImport(CDendroLMDB)
  import CDendroLMDB
  import Foundation

  /// An LMDB environment. If writes are buffered it has MDB_NOSYNC and, unless its file is measured, writes into
  /// the mapped file (MDB_WRITEMAP), which then has the length of the map at once. Each write is a transaction.
  final class LMDB: Peer, @unchecked Sendable {
    // Unchecked: an environment may be used on any thread. A transaction stays on the thread that began it.
    let environment: OpaquePointer
    private(set) var entries: MDB_dbi = 0
    /// A second database of the same environment, for an index.
    private(set) var index: MDB_dbi = 0

    init(at directory: URL, _ durability: PeerDurability, _ use: PeerUse = .speed) throws {
      var created: OpaquePointer?
      try LMDB.check(mdb_env_create(&created))
      guard let created else { throw PeerError(peer: "lmdb", message: "no environment") }
      environment = created
      try LMDB.check(mdb_env_set_mapsize(environment, 8 << 30))
      try LMDB.check(mdb_env_set_maxdbs(environment, 4))
      var flags: UInt32 = 0
      if durability == .buffered {
        flags = UInt32(MDB_NOSYNC) | (use == .speed ? UInt32(MDB_WRITEMAP) : 0)
      }
      try LMDB.check(mdb_env_open(environment, directory.path, flags, 0o644))
      try write { transaction throws(PeerError) in
        try LMDB.check(mdb_dbi_open(transaction, "entries", UInt32(MDB_CREATE), &entries))
        try LMDB.check(mdb_dbi_open(transaction, "index", UInt32(MDB_CREATE), &index))
      }
    }

    func close() { mdb_env_close(environment) }

    func put(_ key: Bytes, _ value: Bytes) throws {
      try write { transaction throws(PeerError) in
        try LMDB.put(key, value, in: entries, transaction)
      }
    }

    func get(_ key: Bytes, _ body: (Bytes?) -> Void) throws {
      try read { transaction throws(PeerError) in body(try LMDB.get(key, in: entries, transaction))
      }
    }

    func batch(_ body: ((Bytes, Bytes) throws -> Void) throws -> Void) throws {
      try write { transaction in
        try body { try LMDB.put($0, $1, in: entries, transaction) }
      }
    }

    func synchronize() throws { try LMDB.check(mdb_env_sync(environment, 1)) }

    // MARK: Transactions

    /// Runs `body` in a transaction, and commits it.
    func write<E: Error>(_ body: (OpaquePointer) throws(E) -> Void) throws {
      var transaction: OpaquePointer?
      try LMDB.check(mdb_txn_begin(environment, nil, 0, &transaction))
      guard let transaction else { throw PeerError(peer: "lmdb", message: "no transaction") }
      do {
        try body(transaction)
      } catch {
        mdb_txn_abort(transaction)
        throw error
      }
      try LMDB.check(mdb_txn_commit(transaction))
    }

    /// Runs `body` in a transaction that reads.
    func read<R, E: Error>(_ body: (OpaquePointer) throws(E) -> R) throws -> R {
      var transaction: OpaquePointer?
      try LMDB.check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction))
      guard let transaction else { throw PeerError(peer: "lmdb", message: "no transaction") }
      defer { mdb_txn_abort(transaction) }
      return try body(transaction)
    }

    static func put(
      _ key: Bytes, _ value: Bytes, in database: MDB_dbi, _ transaction: OpaquePointer
    ) throws(PeerError) {
      var key = MDB_val(key)
      var value = MDB_val(value)
      try check(mdb_put(transaction, database, &key, &value, 0))
    }

    /// The value, which lies in the file's memory until the transaction ends.
    static func get(
      _ key: Bytes, in database: MDB_dbi, _ transaction: OpaquePointer
    ) throws(PeerError) -> Bytes? {
      var key = MDB_val(key)
      var value = MDB_val()
      let status = mdb_get(transaction, database, &key, &value)
      if status == MDB_NOTFOUND { return nil }
      try check(status)
      return value.bytes
    }

    static func check(_ status: Int32) throws(PeerError) {
      if status != MDB_SUCCESS {
        throw PeerError(peer: "lmdb", message: String(cString: mdb_strerror(status)))
      }
    }
  }

  extension MDB_val {
    init(_ bytes: Bytes) {
      // LMDB does not write to what it is given.
      self.init(
        mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }

    var bytes: Bytes { Bytes(start: mv_data, count: mv_size) }
  }

  extension Contestant {
    /// A contestant that uses LMDB's transactions itself.
    static func lmdb(
      _ details: String? = nil, measure: @escaping @Sendable (Turn, LMDB) throws -> Measurement
    ) -> Contestant {
      Contestant(PeerKind.lmdb.name(details)) { turn in
        try FileManager.default.createDirectory(
          at: turn.directory, withIntermediateDirectories: true)
        let lmdb = try LMDB(at: turn.directory, .buffered)
        defer { lmdb.close() }
        return try measure(turn, lmdb)
      }
    }
  }
#endif
