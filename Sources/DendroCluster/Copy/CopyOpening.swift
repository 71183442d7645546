import DendroEngine
import DendroPlatform
import DendroStorage
import Foundation

/// Opens the directory of a server: the engine, and where its copy of the shared log ends.
///
/// The directory has the file `cluster` (`CopyFile`) and the directory `data`, a database. What turns out to be no copy of
/// the shared log, or too old to be continued from it, is never removed: it is moved aside, and read again from PostgreSQL,
/// from the newest checkpoint there if it has one.
struct CopyOpening {
  let directory: String
  let settings: ClusterSettings
  let copy: CopyFile
  let session: ClusterSession
  let environment: DendroStorage.Environment
  let report: @Sendable (LogEvent) -> Void

  private var dataDirectory: String { CopyFile.dataDirectory(in: directory) }

  /// - Parameter open: opens the engine on a directory.
  func run(
    _ open: (_ path: String, _ databaseID: DatabaseID) throws(EngineError) -> Engine
  ) throws(ClusterError) -> (Engine, CopyPosition) {
    let databaseID = session.clusterID.databaseID(of: settings.namespace)
    try claim(databaseID)
    CheckpointPublishing.removeRest(in: directory)
    func openData() throws(EngineError) -> Engine { try open(dataDirectory, databaseID) }
    guard FileManager.default.fileExists(atPath: dataDirectory) else {
      // What was noted is of a copy that was moved away.
      if copy.position != nil { try copy.claim(databaseID) }
      return try begin(openData)
    }
    let engine: Engine
    do throws(EngineError) {
      engine = try openData()
    } catch {
      guard error.isDamage else { throw .engine(error) }
      try setAside("it is damaged: \(error)")
      return try begin(openData)
    }
    do throws(ClusterError) {
      if let position = try position(of: engine) { return (engine, position) }
    } catch {
      let last = engine.head.lsn
      try? engine.close()
      throw error.naming(
        writesOf: CopyComparison(
          directory: directory, copy: copy, last: last, session: session))
    }
    try? engine.close()
    try setAside("it is older than the log in PostgreSQL, or cannot be compared with it any more")
    return try begin(openData)
  }

  // MARK: Beginning

  /// Begins a copy: from the newest checkpoint that can be read, or with the first write.
  private func begin(
    _ open: () throws(EngineError) -> Engine
  ) throws(ClusterError) -> (Engine, CopyPosition) {
    let download = CheckpointDownload(
      session: session, settings: settings, environment: environment, directory: directory)
    var passedOver: Set<[UInt8]> = []
    var failure: ClusterError?
    // Asked for each time: meanwhile another server may have published one, and removed this one.
    while let checkpoint = try session.checkpoints().first(where: { checkpoint in
      !passedOver.contains(checkpoint.upload)
    }) {
      do throws(ClusterError) {
        try download.run(checkpoint, to: dataDirectory)
        copy.note(checkpoint.position)
        let engine = try ClusterError.ofEngine(open)
        return (engine, CopyPosition(checkpoint.position))
      } catch {
        switch error {
        case .damagedCheckpoint: break
        case .engine(let cause) where cause.isDamage: try setAside("\(cause)")
        default: throw error
        }
        report(
          LogEvent(
            .warning, "a checkpoint in PostgreSQL is passed over",
            ["lsn": "\(checkpoint.lsn)", "error": "\(error)"]))
        failure = error
        passedOver.insert(checkpoint.upload)
      }
    }
    if let failure, try !session.continues(behind: .zero) { throw failure }
    let position = CopyPosition(lsn: .zero, chain: try session.chain(at: .zero))
    // If the server's directory was removed meanwhile, the engine would make it again without the file `cluster`, and no
    // later opening would take it.
    guard mkdir(dataDirectory, 0o700) == 0 || errno == EEXIST else {
      throw .files("make \(dataDirectory): \(String(cString: strerror(errno)))")
    }
    return (try ClusterError.ofEngine(open), position)
  }

  /// Checks that the directory is this namespace's, or makes it that.
  private func claim(_ databaseID: DatabaseID) throws(ClusterError) {
    if let found = copy.databaseID {
      if found == databaseID { return }
      throw .otherCluster(
        "\(directory) has a copy of another namespace, or of another cluster, than \(settings.namespace) there"
      )
    }
    guard !FileManager.default.fileExists(atPath: dataDirectory) else {
      throw .otherCluster("\(dataDirectory) has data of its own")
    }
    try copy.claim(databaseID)
  }

  // MARK: Comparing

  /// Where the copy ends.
  ///
  /// - Returns: nil if it can no longer be compared with the shared log, or not be continued from it.
  /// - Throws: `.setBack` if it is not a copy of that log.
  private func position(of engine: Engine) throws(ClusterError) -> CopyPosition? {
    guard let position = try compared(engine), try session.continues(behind: position.lsn) else {
      return nil
    }
    return position
  }

  private func compared(_ engine: Engine) throws(ClusterError) -> CopyPosition? {
    let last = engine.head.lsn
    let head = try session.head()
    guard let known = copy.position else {
      return last == .zero
        ? CopyPosition(lsn: .zero, chain: try session.chain(at: .zero)) : nil
    }
    guard known.lsn <= head.position.lsn, last <= head.position.lsn else {
      throw .setBack(
        """
        PostgreSQL was set back: its log of \(settings.namespace) ends at write \(head.position.lsn), and \
        \(dataDirectory) has writes up to \(max(last, known.lsn))
        """)
    }
    guard let chain = try chain(at: known.lsn, head) else {
      // The copy ends with a batch: a log in which none ends there has others.
      if try session.spans(known.lsn) { throw otherLog(known.lsn) }
      return nil
    }
    guard chain == known.chain else { throw otherLog(known.lsn) }
    if last == known.lsn { return CopyPosition(known) }
    if last < known.lsn {
      // The disk has lost the end, or the process has died before it was written.
      return CopyPosition(lsn: last, chain: try self.chain(at: last, head))
    }
    // What cannot be read any more cannot be compared.
    guard let own = try? followed(known, to: last) else { return nil }
    if let shared = try self.chain(at: last, head) {
      guard shared == own else { throw otherLog(last) }
    } else if let next = try session.batches(behind: last).first, next.firstLSN <= last {
      // The disk has lost the rest of a batch. What it has of it is the same.
      guard try follows(next, known, head, upTo: last) == own else { throw otherLog(last) }
      return CopyPosition(lsn: last, chain: nil)
    }
    return CopyPosition(lsn: last, chain: own)
  }

  private func chain(
    at lsn: LogSequenceNumber, _ head: SharedHead
  ) throws(ClusterError) -> LogChain? {
    lsn == head.position.lsn ? head.position.chain : try session.chain(at: lsn)
  }

  /// The chain of the copy's records before a batch, and of the batch's own up to a write; nil if the log has another chain
  /// before the batch.
  private func follows(
    _ batch: LoggedBatch, _ known: LogPosition, _ head: SharedHead, upTo last: LogSequenceNumber
  ) throws(ClusterError) -> LogChain? {
    guard batch.firstLSN > known.lsn else { return nil }
    let before = LogSequenceNumber(batch.firstLSN.rawValue - 1)
    let chain = try followed(known, to: before)
    if let shared = try self.chain(at: before, head), shared != chain { return nil }
    return try BatchBody.decode(batch.body, firstLSN: batch.firstLSN) { records in
      chain.appending(records.filter { $0.lastLSN <= last })
    }
  }

  private func otherLog(_ lsn: LogSequenceNumber) -> ClusterError {
    .setBack(
      """
      PostgreSQL was set back: at write \(lsn) its log of \(settings.namespace) is another one than that of which \
      \(dataDirectory) has a copy
      """)
  }

  /// The chain at the end of the copy, computed from its records behind a known position.
  private func followed(
    _ known: LogPosition, to last: LogSequenceNumber
  ) throws(ClusterError) -> LogChain {
    var chain = known.chain
    try CopyReader(path: dataDirectory).records(behind: known.lsn, upTo: last) {
      (record) throws(ClusterError) in
      chain = chain.appending(record)
    }
    return chain
  }

  // MARK: Moving aside

  private func setAside(_ reason: String) throws(ClusterError) {
    let place = try copy.setAside(session.databaseID)
    report(
      LogEvent(
        .warning, "the copy of the log is moved aside and read again from PostgreSQL",
        ["reason": reason, "place": place]))
  }
}
