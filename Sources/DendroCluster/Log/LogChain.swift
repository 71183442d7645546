import DendroEngine
import DendroStorage

/// A hash over the cluster, the namespace, and all records of its log so far: two logs with the same chain are the same
/// log.
struct LogChain: Hashable, Sendable {
  let bytes: [UInt8]

  /// - Returns: nil if it is not so long.
  init?(bytes: [UInt8]) {
    guard bytes.count == SHA256.byteCount else { return nil }
    self.bytes = bytes
  }

  private init(hash bytes: [UInt8]) { self.bytes = bytes }

  /// That of a log without records.
  init(of cluster: ClusterID, _ namespace: String) {
    let hash = SHA256()
    hash.update("dendro log")
    hash.update(cluster.bytes)
    hash.update(namespace)
    self.init(hash: hash.finish())
  }

  /// That of this log with one record more.
  func appending(_ record: SharedRecord) -> LogChain {
    let hash = SHA256()
    hash.update(bytes)
    hash.update(record.firstLSN.rawValue)
    hash.update(UInt64(record.count))
    hash.update(UInt64(bitPattern: record.baseTime))
    hash.update(record.payload)
    return LogChain(hash: hash.finish())
  }

  func appending(_ records: [SharedRecord]) -> LogChain {
    records.reduce(self) { $0.appending($1) }
  }
}

/// Where a log ends.
struct LogPosition: Hashable, Sendable {
  var lsn: LogSequenceNumber
  var chain: LogChain
}

/// The name of a cluster, drawn at random when its schema is made.
struct ClusterID: Hashable, Sendable {
  static let byteCount = 16

  let bytes: [UInt8]

  /// - Returns: nil if it is not so long.
  init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// What the directories of all servers say of a namespace.
  func databaseID(of namespace: String) -> DatabaseID {
    let hash = SHA256()
    hash.update("dendro database")
    hash.update(bytes)
    hash.update(namespace)
    return hash.finish().withUnsafeBytes {
      DatabaseID(
        high: $0.loadUnaligned(as: UInt64.self).bigEndian,
        low: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self).bigEndian)
    }
  }
}
