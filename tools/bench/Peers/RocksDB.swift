#if canImport(CDendroRocksDB)
  import CDendroRocksDB
  import Foundation

  /// A RocksDB database with its write-ahead log. As with LevelDB, the write buffer is large enough for all
  /// data, in its favour. If writes are durable, several threads take turns at the log and the buffer. If they
  /// are not, one thread writes, for which the buffer needs no care for several.
  final class RocksDB: Peer, @unchecked Sendable {
    // Unchecked: a rocksdb_t may be used on any thread, and the options are never changed.
    private let database: OpaquePointer
    private let options: OpaquePointer
    private let writing: OpaquePointer
    private let reading: OpaquePointer

    init(at directory: URL, _ durability: PeerDurability) throws {
      options = rocksdb_options_create()
      rocksdb_options_set_create_if_missing(options, 1)
      rocksdb_options_set_write_buffer_size(options, 1 << 30)
      if durability == .durable {
        rocksdb_options_set_enable_pipelined_write(options, 1)
      } else {
        rocksdb_options_set_allow_concurrent_memtable_write(options, 0)
        rocksdb_options_set_enable_write_thread_adaptive_yield(options, 0)
      }
      writing = rocksdb_writeoptions_create()
      rocksdb_writeoptions_set_sync(writing, durability == .durable ? 1 : 0)
      reading = rocksdb_readoptions_create()
      var message: UnsafeMutablePointer<CChar>?
      let opened = rocksdb_open(options, directory.path, &message)
      try RocksDB.check(message)
      guard let opened else { throw PeerError(peer: "rocksdb", message: "no database") }
      database = opened
    }

    func close() {
      rocksdb_close(database)
      rocksdb_options_destroy(options)
      rocksdb_writeoptions_destroy(writing)
      rocksdb_readoptions_destroy(reading)
    }

    func put(_ key: Bytes, _ value: Bytes) throws {
      var message: UnsafeMutablePointer<CChar>?
      rocksdb_put(
        database, writing, key.characters, key.count, value.characters, value.count, &message)
      try RocksDB.check(message)
    }

    func get(_ key: Bytes, _ body: (Bytes?) -> Void) throws {
      var message: UnsafeMutablePointer<CChar>?
      let value = rocksdb_get_pinned(database, reading, key.characters, key.count, &message)
      try RocksDB.check(message)
      guard let value else { return body(nil) }
      defer { rocksdb_pinnableslice_destroy(value) }
      var byteCount = 0
      let content = rocksdb_pinnableslice_value(value, &byteCount)
      body(Bytes(start: content, count: byteCount))
    }

    func batch(_ body: ((Bytes, Bytes) throws -> Void) throws -> Void) throws {
      let batch = rocksdb_writebatch_create()
      defer { rocksdb_writebatch_destroy(batch) }
      try body { key, value in
        rocksdb_writebatch_put(batch, key.characters, key.count, value.characters, value.count)
      }
      var message: UnsafeMutablePointer<CChar>?
      rocksdb_write(database, writing, batch, &message)
      try RocksDB.check(message)
    }

    func synchronize() throws {
      var message: UnsafeMutablePointer<CChar>?
      rocksdb_flush_wal(database, 1, &message)
      try RocksDB.check(message)
    }

    private static func check(_ message: UnsafeMutablePointer<CChar>?) throws {
      guard let message else { return }
      defer { rocksdb_free(message) }
      throw PeerError(peer: "rocksdb", message: String(cString: message))
    }
  }
#endif
