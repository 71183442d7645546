import DendroStorage
import DendroTree

/// A database of its own from one moment of a running one.
enum Backup {
  static func write(
    head: CommitPipeline, databaseID: DatabaseID, to path: String, environment: Environment
  ) throws(EngineError) {
    // A backup has no writes that a failing disk undoes: the root is taken in the same moment in which the
    // barrier is added.
    var taken: (root: Node, lsn: LogSequenceNumber, time: Int64)?
    try head.wait { completion in
      head.request(completion) { admission in
        taken = (admission.root, admission.lastLSN, admission.lastTime)
        admission.batch.addSynchronize(completion)
      }
    }
    guard let (root, lsn, time) = taken else { return }
    do throws(StorageError) {
      var footprint = try Footprint(of: path, environment.fileSystem)
      do throws(StorageError) {
        let directory = try DatabaseDirectory.open(path, environment: environment, mode: .backup)
        defer { directory.close() }
        try footprint.begin()
        // Any number binds the checkpoint to its log: a new one tells this log from those of other backups.
        let logChecksum =
          lsn == .zero ? 0 : UInt32(truncatingIfNeeded: environment.randomness.next())
        _ = try CheckpointCoding.write(
          root, lsn: lsn, time: time, databaseID: databaseID, logChecksum: logChecksum,
          to: directory, isCancelled: { false })
        let log = try LogWriter.create(
          directory, databaseID: databaseID, after: lsn, logChecksum: logChecksum, time: time)
        try log.close()
        try directory.finishBackup()
      } catch {
        if case .locked = error { throw error }
        footprint.remove()
        throw error
      }
    } catch {
      throw .storage(error)
    }
  }
}
