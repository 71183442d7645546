#if canImport(CDendroLevelDB)
  import CDendroLevelDB
  import CDendroLevelDBLog
  import Foundation

  /// A LevelDB database, used as its documentation advises, with one deviation in its favour: the write
  /// buffer is large enough for all data. So LevelDB never compacts during a measurement, and opening
  /// replays its log. After the replay it writes the buffer to a table, which is a part of opening, unless it is to
  /// go on with its log.
  final class LevelDB: Peer, @unchecked Sendable {
    // Unchecked: a leveldb_t may be used on any thread, and the options are never changed.
    private let database: OpaquePointer
    private let options: OpaquePointer
    private let writing: OpaquePointer
    private let synchronized: OpaquePointer
    private let reading: OpaquePointer

    /// What it is configured for, beside writing.
    enum Tuning {
      case none
      /// Opening replays the log and writes no table.
      case replaying
      /// Tables are read from end to end: they are not compressed, have large blocks, and none is kept in a cache.
      case scanning
    }

    init(at directory: URL, _ durability: PeerDurability, _ tuning: Tuning = .none) throws {
      options = leveldb_options_create()
      leveldb_options_set_create_if_missing(options, 1)
      leveldb_options_set_write_buffer_size(options, 1 << 30)
      reading = leveldb_readoptions_create()
      switch tuning {
      case .none: break
      case .replaying:
        if dendro_leveldb_reuse_logs(UnsafeMutableRawPointer(options)) == 0 {
          throw PeerError(peer: "leveldb", message: "its C++ headers are missing")
        }
      case .scanning:
        leveldb_options_set_compression(options, Int32(leveldb_no_compression))
        leveldb_options_set_block_size(options, 64 << 10)
        leveldb_options_set_max_file_size(options, 64 << 20)
        leveldb_readoptions_set_fill_cache(reading, 0)
      }
      writing = leveldb_writeoptions_create()
      leveldb_writeoptions_set_sync(writing, durability == .durable ? 1 : 0)
      synchronized = leveldb_writeoptions_create()
      leveldb_writeoptions_set_sync(synchronized, 1)
      var message: UnsafeMutablePointer<CChar>?
      let opened = leveldb_open(options, directory.path, &message)
      try LevelDB.check(message)
      guard let opened else { throw PeerError(peer: "leveldb", message: "no database") }
      database = opened
    }

    func close() {
      leveldb_close(database)
      leveldb_options_destroy(options)
      leveldb_writeoptions_destroy(writing)
      leveldb_writeoptions_destroy(synchronized)
      leveldb_readoptions_destroy(reading)
    }

    func put(_ key: Bytes, _ value: Bytes) throws {
      var message: UnsafeMutablePointer<CChar>?
      leveldb_put(
        database, writing, key.characters, key.count, value.characters, value.count, &message)
      try LevelDB.check(message)
    }

    func get(_ key: Bytes, _ body: (Bytes?) -> Void) throws {
      var message: UnsafeMutablePointer<CChar>?
      var byteCount = 0
      let value = leveldb_get(
        database, reading, key.characters, key.count, &byteCount, &message)
      try LevelDB.check(message)
      guard let value else { return body(nil) }
      defer { leveldb_free(value) }
      body(Bytes(start: value, count: byteCount))
    }

    func batch(_ body: ((Bytes, Bytes) throws -> Void) throws -> Void) throws {
      let batch = leveldb_writebatch_create()
      defer { leveldb_writebatch_destroy(batch) }
      try body { key, value in
        leveldb_writebatch_put(batch, key.characters, key.count, value.characters, value.count)
      }
      var message: UnsafeMutablePointer<CChar>?
      leveldb_write(database, writing, batch, &message)
      try LevelDB.check(message)
    }

    /// Writes an empty batch synchronously.
    func synchronize() throws {
      let batch = leveldb_writebatch_create()
      defer { leveldb_writebatch_destroy(batch) }
      var message: UnsafeMutablePointer<CChar>?
      leveldb_write(database, synchronized, batch, &message)
      try LevelDB.check(message)
    }

    /// Calls `body` with every pair, in the order of keys.
    func forEach(_ body: (Bytes, Bytes) -> Void) throws {
      let iterator = leveldb_create_iterator(database, reading)
      defer { leveldb_iter_destroy(iterator) }
      leveldb_iter_seek_to_first(iterator)
      while leveldb_iter_valid(iterator) != 0 {
        var keyCount = 0
        var valueCount = 0
        let key = leveldb_iter_key(iterator, &keyCount)
        let value = leveldb_iter_value(iterator, &valueCount)
        body(Bytes(start: key, count: keyCount), Bytes(start: value, count: valueCount))
        leveldb_iter_next(iterator)
      }
      var message: UnsafeMutablePointer<CChar>?
      leveldb_iter_get_error(iterator, &message)
      try LevelDB.check(message)
    }

    private static func check(_ message: UnsafeMutablePointer<CChar>?) throws {
      guard let message else { return }
      defer { leveldb_free(message) }
      throw PeerError(peer: "leveldb", message: String(cString: message))
    }
  }
#endif
