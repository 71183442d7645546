import DendroStorage
import DendroTree

/// Writes a copy of a running database as of one moment: a checkpoint and an empty log behind it, in a
/// directory of their own.
enum Backup {
  /// Makes all writes durable, then writes the copy. Waits for the disk on the calling thread.
  ///
  /// - Parameter parity: whether each file of the copy gets parity.
  static func write(
    head: CommitPipeline, databaseID: DatabaseID, to path: String, parity: Bool,
    environment: Environment
  ) throws(EngineError) {
    // The root is taken under the lock under which the barrier is added: so the backup has no write that a
    // failing disk undoes.
    var taken: HistoryState?
    try head.wait { completion in
      head.request(completion) { admission in
        taken = HistoryState(
          roots: admission.roots, lsn: admission.lastLSN, time: admission.lastTime)
        admission.batch.addSynchronize(completion)
      }
    }
    guard let taken else { return }
    try write(taken, databaseID: databaseID, to: path, parity: parity, environment: environment)
  }

  /// Writes one state as a database of its own. Waits for the disk on the calling thread.
  static func write(
    _ state: HistoryState, databaseID: DatabaseID, to path: String, parity: Bool = false,
    environment: Environment
  ) throws(EngineError) {
    let (lsn, time) = (state.lsn, state.time)
    do throws(StorageError) {
      try DatabaseDirectory.make(at: path, environment: environment) {
        (directory) throws(StorageError) in
        // Drawn at random: binds the checkpoint to its log, and to no other backup's.
        let logChecksum =
          lsn == .zero ? 0 : UInt32(truncatingIfNeeded: environment.randomness.next())
        _ = try CheckpointCoding.write(
          state.roots, lsn: lsn, time: time, databaseID: databaseID, logChecksum: logChecksum,
          to: directory, isCancelled: { false })
        let log = try LogWriter.create(
          directory, databaseID: databaseID, after: lsn, logChecksum: logChecksum, time: time,
          hasSecondRoot: !state.roots.system.isEmpty)
        try log.close()
        if parity { _ = try directory.completeParity(of: directory.contents().fileNames) }
        try directory.finishBackup()
      }
    } catch {
      throw .storage(error)
    }
  }
}
