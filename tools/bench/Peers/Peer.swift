import Foundation

typealias Bytes = UnsafeRawBufferPointer

/// A key-value store that Dendro is compared with, used as its documentation advises.
///
/// Values are what apps keep under such keys; none of the peers has a tree, listeners or validation.
protocol Peer: AnyObject {
  /// Writes one pair, atomically; durable on return if the peer was opened so.
  func put(_ key: Bytes, _ value: Bytes) throws

  /// Calls `body` with the value at a key; nil if there is none. The value is lent for the call.
  func get(_ key: Bytes, _ body: (Bytes?) -> Void) throws

  /// Writes what `body` puts, all or nothing.
  func batch(_ body: (_ put: (Bytes, Bytes) throws -> Void) throws -> Void) throws

  /// Makes all earlier writes durable.
  func synchronize() throws

  /// CPU time of the peer's server so far; nil if it runs in this process.
  func serverProcessorSeconds() throws -> Double?

  func close()
}

extension Peer {
  func serverProcessorSeconds() throws -> Double? { nil }

  /// Whether a key has this value.
  func holds(_ entries: Entries, _ index: Int) throws -> Bool {
    var isEqual = false
    try get(entries.key(index)) { value in
      isEqual = value.map { $0.elementsEqual(entries.value(index)) } ?? false
    }
    return isEqual
  }

  func number(at key: Bytes) throws -> Int64 {
    var number = StoredNumber(0)
    try get(key) { number = StoredNumber($0) }
    return number.value
  }
}

/// What a peer's writes promise when they return.
enum PeerDurability {
  /// The system has them; `synchronize()` makes them durable.
  case buffered
  /// They are durable.
  case durable
}

/// What is measured of a peer.
enum PeerUse {
  case speed
  /// The bytes of its files.
  case space
}

/// The peers that this build has, by the names of their contestants.
enum PeerKind: String, CaseIterable {
  case levelDB = "leveldb"
  case rocksDB = "rocksdb"
  case lmdb
  case sqlite
  case redis

  var isBuilt: Bool { opening != nil }

  /// - Parameter directory: made if it is missing.
  func open(
    at directory: URL, _ durability: PeerDurability, for use: PeerUse = .speed
  ) throws -> any Peer {
    guard let opening else {
      throw PeerError(peer: rawValue, message: "not in this build; tools/bench/peer has it")
    }
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return try opening(directory, durability, use)
  }

  /// Nil if this build does not have the peer.
  private var opening: ((URL, PeerDurability, PeerUse) throws -> any Peer)? {
    switch self {
    case .levelDB:
      #if canImport(CDendroLevelDB)
        return { directory, durability, _ in try LevelDB(at: directory, durability) }
      #else
        return nil
      #endif
    case .rocksDB:
      #if canImport(CDendroRocksDB)
        return { directory, durability, _ in try RocksDB(at: directory, durability) }
      #else
        return nil
      #endif
    case .lmdb:
      #if canImport(CDendroLMDB)
        return { try LMDB(at: $0, $1, $2) }
      #else
        return nil
      #endif
    case .sqlite:
      #if canImport(CDendroSQLite)
        return { directory, durability, _ in try SQLite(at: directory, durability) }
      #else
        return nil
      #endif
    case .redis:
      #if canImport(CDendroRedis)
        return { directory, durability, _ in try Redis(at: directory, durability) }
      #else
        return nil
      #endif
    }
  }
}

struct PeerError: Error, CustomStringConvertible {
  let peer: String
  let message: String

  var description: String { "\(peer): \(message)" }
}

extension Contestant {
  /// A contestant of a peer; nil if this build does not have it.
  ///
  /// - Parameters:
  ///   - details: what follows the peer's name.
  ///   - measure: gets the peer, empty; it is closed afterwards.
  static func peer(
    _ kind: PeerKind, _ details: String? = nil, _ durability: PeerDurability = .buffered,
    for use: PeerUse = .speed, measure: @escaping @Sendable (Turn, any Peer) throws -> Measurement
  ) -> Contestant? {
    guard kind.isBuilt else { return nil }
    return Contestant(kind.name(details)) { turn in
      let peer = try kind.open(at: turn.directory, durability, for: use)
      defer { peer.close() }
      return try measure(turn, peer)
    }
  }
}

extension PeerKind {
  /// The name of a contestant.
  func name(_ details: String?) -> String { details.map { "\(rawValue), \($0)" } ?? rawValue }
}

extension Bytes {
  /// As C's functions take bytes.
  var characters: UnsafePointer<CChar>? { baseAddress?.assumingMemoryBound(to: CChar.self) }
}
