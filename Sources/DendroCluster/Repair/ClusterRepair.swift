import Dendro
import DendroEngine
import DendroPlatform
import DendroStorage

/// A server's directory that has writes which PostgreSQL lacks, since that was set back: what they are, and the two ways to
/// go on. It holds the directory's lock, so that no server uses it meanwhile. For one thread.
package final class ClusterRepair {
  /// What PostgreSQL lacks.
  package struct Question: Sendable {
    /// The last write that PostgreSQL has.
    package let sharedLSN: UInt64
    /// The last write that the directory has, as far as it is known.
    package let lastLSN: UInt64
    /// The writes that only the directory has; nil if PostgreSQL has other writes, and it cannot be told since when.
    package let writes: ClosedRange<UInt64>?
    /// The writes after those that PostgreSQL had taken, and that the directory has lost as well; nil if it knows of none, or
    /// if it can put nothing back. Another server's directory may have them.
    package let lost: ClosedRange<UInt64>?
    /// Why they cannot be put into PostgreSQL again; nil if they can.
    package let obstacle: String?
  }

  /// The namespace of which the directory has a copy.
  package let namespace: String
  /// Nil if PostgreSQL has all that the directory has.
  package let question: Question?
  private let difference: CopyDifference?
  private let directory: String
  private let settings: ClusterSettings
  private let copy: CopyFile
  private let lock: DatabaseDirectory?
  private let session: ClusterSession
  private let interruption: Interruption

  /// Locks the directory, connects to PostgreSQL, and compares the two.
  ///
  /// - Parameters:
  ///   - directory: of a server and one namespace; absolute.
  ///   - address: of PostgreSQL, as libpq reads it.
  /// - Throws: `RepairFailure`: refused if the directory is no copy of a namespace that this cluster has.
  package convenience init(_ directory: String, address: String) throws(RepairFailure) {
    try self.init(directory, address: address) { _ in }
  }

  /// - Parameter adjust: changes the settings, for tests.
  init(
    _ directory: String, address: String, adjust: (inout ClusterSettings) -> Void
  ) throws(RepairFailure) {
    guard Database.isClusterCopy(at: directory) else {
      throw .refused(
        "\(directory) is not the directory of a server and one namespace: it has no file 'cluster'")
    }
    do throws(ClusterError) {
      copy = try CopyFile(
        at: directory + "/cluster", newID: Environment.system.randomness.bytes(ServerID.byteCount))
      lock = try Self.lock(directory)
      interruption = try Self.interruption()
    } catch {
      throw RepairFailure(error)
    }
    self.directory = directory
    namespace = try Self.namespace(of: copy, directory, address)
    var settings = ClusterSettings(
      address: address, namespace: namespace, serverID: copy.serverID)
    adjust(&settings)
    self.settings = settings
    do throws(ClusterError) {
      session = try Self.session(settings, interruption)
      try copy.check(session)
      if lock == nil {
        difference = nil
      } else {
        let last = try Self.lastWrite(in: directory)
        difference = try CopyComparison(
          directory: directory, copy: copy, last: last, session: session
        ).run()
      }
    } catch {
      throw RepairFailure(error)
    }
    question = difference.map { Question($0) }
  }

  /// Connects to the host that commits: an old primary that goes on to run does not.
  private static func session(
    _ settings: ClusterSettings, _ interruption: Interruption
  ) throws(ClusterError) -> ClusterSession {
    var failureCount = 0
    while true {
      do throws(ClusterError) {
        return try ClusterSession(
          settings, interruption,
          newClusterID: Environment.system.randomness.bytes(ClusterID.byteCount))
      } catch {
        failureCount += 1
        guard case .postgres(let cause) = error, cause.isSilence,
          failureCount < settings.hostCount
        else { throw error }
      }
    }
  }

  /// Lets servers use the directory again. Nothing can be done any more.
  package func close() {
    try? session.leave()
    lock?.close()
  }

  // MARK: What there is

  /// - Returns: nil if the directory has no data.
  private static func lock(_ directory: String) throws(ClusterError) -> DatabaseDirectory? {
    do throws(StorageError) {
      return try DatabaseDirectory.open(
        CopyFile.dataDirectory(in: directory), environment: .system,
        mode: .readWrite(create: false))
    } catch {
      if case .notFound = error { return nil }
      throw .engine(.storage(error))
    }
  }

  private static func interruption() throws(ClusterError) -> Interruption {
    do throws(PostgresError) {
      return try Interruption()
    } catch {
      throw .postgres(error)
    }
  }

  /// The last write that the files have, as a server would find them.
  private static func lastWrite(in directory: String) throws(ClusterError) -> LogSequenceNumber {
    try ClusterError.ofEngine { () throws(EngineError) in
      let engine = try Engine.open(at: CopyFile.dataDirectory(in: directory), mode: .readOnly)
      defer { try? engine.close() }
      return engine.head.lsn
    }
  }

  /// The directory says by a hash which namespace it has.
  private static func namespace(
    of copy: CopyFile, _ directory: String, _ address: String
  ) throws(RepairFailure) -> String {
    guard let databaseID = copy.databaseID else {
      throw .refused("\(directory) has no copy of anything yet")
    }
    let found: (id: ClusterID, namespaces: [String])?
    do throws(DatabaseError) {
      found = try ClusterReader(address).identity()
    } catch {
      throw .failed(error)
    }
    guard let (id, namespaces) = found else {
      throw .refused("no servers share databases over this PostgreSQL")
    }
    // A namespace that PostgreSQL has lost as a whole is found by the name that servers give to its directory.
    let name = String(directory.split(separator: "/").last ?? "")
    if let namespace = (namespaces + [name]).first(where: { id.databaseID(of: $0) == databaseID }) {
      return namespace
    }
    let names = namespaces.sorted().joined(separator: ", ")
    throw .refused(
      """
      \(directory) has a copy of another cluster than this PostgreSQL, or of a namespace that it does not have: it has \
      \(names.isEmpty ? "none" : names)
      """)
  }

  // MARK: Putting back

  /// Appends to PostgreSQL's log what only the directory has. It begins an epoch for that, as a server that takes over: if
  /// one leads, it refuses; if that is gone, it waits as long as a server does.
  ///
  /// - Parameter progress: called with the last write that PostgreSQL has again, about once a second, and with what
  ///   PostgreSQL says while it does not answer.
  /// - Returns: how many writes were appended.
  /// - Throws: `RepairFailure`: refused if there is nothing to put back, if it cannot be put back, or if a server leads
  ///   or began to lead meanwhile. It can be called again by another object.
  package func restore(
    progress: @escaping @Sendable (_ lsn: UInt64, _ trouble: String?) -> Void = { _, _ in }
  ) throws(RepairFailure) -> Int {
    guard let difference else { throw .refused(nothing) }
    guard case .beginning(let start) = difference.kind else {
      throw .refused(difference.advice(for: directory))
    }
    // What the file says of writes that the directory has lost would count, if only one is put back: the later position does.
    copy.note(start)
    let restoring = LogRestoring(
      settings, copy, directory: directory, session, interruption, progress: progress)
    try restoring.run(from: start, to: difference.last)
    return Int(difference.last.rawValue - start.lsn.rawValue)
  }

  // MARK: Giving up

  /// Moves the copy aside, so that a server that is started on the directory reads all from PostgreSQL.
  ///
  /// - Returns: where the copy is now.
  /// - Throws: `RepairFailure`: refused if PostgreSQL lacks nothing.
  package func acceptLoss() throws(RepairFailure) -> String {
    guard difference != nil else { throw .refused(nothing) }
    do throws(ClusterError) {
      return try copy.setAside(session.databaseID)
    } catch {
      throw RepairFailure(error)
    }
  }

  private var nothing: String {
    "no write is in question: PostgreSQL has all that \(directory) has of \(namespace)"
  }
}

extension ClusterRepair.Question {
  fileprivate init(_ difference: CopyDifference) {
    sharedLSN = difference.sharedLSN.rawValue
    lastLSN = difference.last.rawValue
    writes = difference.question
    lost = difference.lost
    switch difference.kind {
    case .beginning: obstacle = nil
    case .other:
      obstacle =
        "PostgreSQL has other writes"
        + (difference.common.map { " from write \($0.next) on" } ?? "")
    case .unproven(let reason): obstacle = reason
    }
  }
}
