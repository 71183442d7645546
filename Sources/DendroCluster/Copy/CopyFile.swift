import DendroPlatform
import DendroStorage
import Synchronization

/// The file `cluster` in a server's directory: whose copy of the log the directory has, and how far that is known to be a
/// copy.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 8 | `DndClust` |
/// | 8 | 8 | format version, 1 |
/// | 16 | 16 | the name of the server |
/// | 32 | 16 | what the segments say of cluster and namespace; zeros until that is known |
/// | 64, 128 | 48 | a position of the log: LSN, chain, and the first 8 bytes of the SHA-256 hash of both |
///
/// The positions are written in turn, so that a torn one leaves the other. Neither is synchronized: after a power loss an
/// older one may stand there, which says less and nothing wrong. The later of the two counts.
final class CopyFile: Sendable {
  private static let magic = Array("DndClust".utf8)
  private static let version: UInt64 = 1
  private static let byteCount = 192
  private static let slotOffsets = [64, 128]
  private static let slotByteCount = 48

  let path: String
  let serverID: ServerID
  private let descriptor: CInt
  private let state: Mutex<State>

  private struct State {
    var databaseID: DatabaseID?
    var position: LogPosition?
    /// That which stands in the other slot.
    var earlier: LogPosition?
    /// The slot that is written next.
    var slot = 0

    init() {}

    /// - Parameter bytes: the whole file.
    init(_ bytes: [UInt8]) {
      let (high, low) = (CopyFile.number(bytes, 32), CopyFile.number(bytes, 40))
      if high | low != 0 { databaseID = DatabaseID(high: high, low: low) }
      for (slot, offset) in CopyFile.slotOffsets.enumerated() {
        guard
          let found = CopyFile.position(Array(bytes[offset..<(offset + CopyFile.slotByteCount)]))
        else { continue }
        if let position, position.lsn >= found.lsn {
          earlier = found
          continue
        }
        earlier = position
        position = found
        self.slot = 1 - slot
      }
    }
  }

  /// Whose copy the directory has; nil as long as it has none.
  var databaseID: DatabaseID? { state.withLock { $0.databaseID } }
  /// Up to where what the directory has had was a copy of the log; nil if that is not known.
  var position: LogPosition? { state.withLock { $0.position } }
  /// All positions of which the file says so, the latest first. Where a leader was killed, the directory may not have the
  /// batch of the latest.
  var positions: [LogPosition] {
    state.withLock { [$0.position, $0.earlier].compactMap { $0 } }
  }

  /// Opens the file, and makes it if it is missing.
  ///
  /// - Parameter newID: of a server whose file is made.
  init(at path: String, newID: [UInt8]) throws(ClusterError) {
    let descriptor = DendroPlatform.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open", path) }
    self.path = path
    self.descriptor = descriptor
    var bytes = [UInt8](repeating: 0, count: Self.byteCount)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    // A file that is empty or cut short was being made when the machine stopped.
    let isNew = count != Self.byteCount || Array(bytes[0..<8]) != Self.magic
    serverID = ServerID(bytes: isNew ? newID : Array(bytes[16..<32]))
    state = Mutex(isNew ? State() : State(bytes))
    if isNew {
      try write(head: nil)
    } else if Self.number(bytes, 8) > Self.version {
      throw .files("\(path) was made by a newer release")
    }
  }

  deinit { close(descriptor) }

  /// Checks that a session is one with the cluster of which the directory has a copy.
  func check(_ session: ClusterSession) throws(ClusterError) {
    guard let databaseID, session.databaseID != databaseID else { return }
    throw .postgres(.unreachable("the address leads to another cluster now"))
  }

  /// Says whose copy the directory has from now on. Synchronized.
  func claim(_ databaseID: DatabaseID) throws(ClusterError) {
    try write(head: databaseID)
    state.withLock {
      $0.databaseID = databaseID
      $0.position = nil
      $0.earlier = nil
    }
  }

  /// Writes the head, and no positions.
  private func write(head databaseID: DatabaseID?) throws(ClusterError) {
    var bytes = [UInt8](repeating: 0, count: Self.byteCount)
    bytes.replaceSubrange(0..<8, with: Self.magic)
    Self.store(Self.version, in: &bytes, at: 8)
    bytes.replaceSubrange(16..<32, with: serverID.bytes)
    Self.store(databaseID?.high ?? 0, in: &bytes, at: 32)
    Self.store(databaseID?.low ?? 0, in: &bytes, at: 40)
    guard write(bytes, at: 0), fsync(descriptor) == 0 else { throw Self.failure("write", path) }
  }

  /// Notes a position of the log. If that cannot be written, an older one stays there.
  func note(_ position: LogPosition) {
    state.withLock { state in
      state.earlier = state.position
      state.position = position
      var bytes = [UInt8](repeating: 0, count: 8)
      Self.store(position.lsn.rawValue, in: &bytes, at: 0)
      bytes += position.chain.bytes
      bytes += Self.check(bytes)
      if write(bytes, at: Self.slotOffsets[state.slot]) { state.slot = 1 - state.slot }
    }
  }

  private func write(_ bytes: [UInt8], at offset: Int) -> Bool {
    bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
      == bytes.count
  }

  private static func position(_ bytes: [UInt8]) -> LogPosition? {
    guard check(Array(bytes[..<40])) == Array(bytes[40...]),
      let chain = LogChain(bytes: Array(bytes[8..<40]))
    else { return nil }
    return LogPosition(lsn: LogSequenceNumber(number(bytes, 0)), chain: chain)
  }

  private static func check(_ bytes: [UInt8]) -> [UInt8] {
    let hash = SHA256()
    hash.update(bytes)
    return Array(hash.finish()[..<8])
  }

  private static func number(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
    bytes[offset..<(offset + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func store(_ number: UInt64, in bytes: inout [UInt8], at offset: Int) {
    for index in 0..<8 {
      bytes[offset + index] = UInt8(truncatingIfNeeded: number >> UInt64(8 * index))
    }
  }

  private static func failure(_ operation: String, _ path: String) -> ClusterError {
    .files("\(operation) \(path): \(String(cString: strerror(errno)))")
  }
}
