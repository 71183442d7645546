#if canImport(CDendroLevelDB)
  import CDendroLevelDB
  import Foundation

  /// Keys and values as bytes, which are prepared before the measurement.
  struct LevelDBEntries: Sendable {
    let keys: [[CChar]]
    let values: [[CChar]]

    init(_ sets: PostSets) {
      keys = sets.paths.map { $0.utf8.map { CChar(bitPattern: $0) } }
      values = sets.values.map { $0.utf8.map { CChar(bitPattern: $0) } }
    }

    var count: Int { keys.count }
  }

  /// A LevelDB database, used as its documentation advises, with one deviation in its favour: the write
  /// buffer is large enough for all data. So LevelDB never compacts during a measurement, and opening
  /// replays its log. After the replay it writes the buffer to a table; this is a part of opening.
  final class LevelDB: @unchecked Sendable {
    // Unchecked: a leveldb_t may be used on any thread, and the options are never changed.
    private let database: OpaquePointer
    private let options: OpaquePointer
    private let buffered: OpaquePointer
    private let synchronized: OpaquePointer
    private let reading: OpaquePointer

    init(at url: URL) throws {
      options = leveldb_options_create()
      leveldb_options_set_create_if_missing(options, 1)
      leveldb_options_set_write_buffer_size(options, 1 << 30)
      buffered = leveldb_writeoptions_create()
      leveldb_writeoptions_set_sync(buffered, 0)
      synchronized = leveldb_writeoptions_create()
      leveldb_writeoptions_set_sync(synchronized, 1)
      reading = leveldb_readoptions_create()
      var message: UnsafeMutablePointer<CChar>?
      let opened = leveldb_open(options, url.path, &message)
      try LevelDB.check(message)
      guard let opened else { throw LevelDBError(message: "no database") }
      database = opened
    }

    func close() {
      leveldb_close(database)
      leveldb_options_destroy(options)
      leveldb_writeoptions_destroy(buffered)
      leveldb_writeoptions_destroy(synchronized)
      leveldb_readoptions_destroy(reading)
    }

    /// Writes one batch with one put.
    func put(_ entries: LevelDBEntries, _ index: Int, synchronizing: Bool) throws {
      var message: UnsafeMutablePointer<CChar>?
      entries.keys[index].withUnsafeBufferPointer { key in
        entries.values[index].withUnsafeBufferPointer { value in
          leveldb_put(
            database, synchronizing ? synchronized : buffered, key.baseAddress, key.count,
            value.baseAddress, value.count, &message)
        }
      }
      try LevelDB.check(message)
    }

    /// Makes all earlier writes durable, by writing an empty batch synchronously.
    func synchronize() throws {
      let batch = leveldb_writebatch_create()
      defer { leveldb_writebatch_destroy(batch) }
      var message: UnsafeMutablePointer<CChar>?
      leveldb_write(database, synchronized, batch, &message)
      try LevelDB.check(message)
    }

    func contains(_ entries: LevelDBEntries, _ index: Int) throws -> Bool {
      var message: UnsafeMutablePointer<CChar>?
      var byteCount = 0
      let value = entries.keys[index].withUnsafeBufferPointer { key in
        leveldb_get(database, reading, key.baseAddress, key.count, &byteCount, &message)
      }
      try LevelDB.check(message)
      defer { leveldb_free(value) }
      return value != nil && byteCount == entries.values[index].count
    }

    private static func check(_ message: UnsafeMutablePointer<CChar>?) throws {
      guard let message else { return }
      defer { leveldb_free(message) }
      throw LevelDBError(message: String(cString: message))
    }
  }

  struct LevelDBError: Error {
    let message: String
  }
#endif
