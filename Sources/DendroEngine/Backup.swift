import DendroStorage
import DendroTree

/// A database of its own from one moment of a running one.
enum Backup {
  static func write(
    head: CommitPipeline, databaseID: DatabaseID, to path: String, environment: Environment
  ) throws(EngineError) {
    let (root, lsn, time) = head.withAdmission { ($0.root, $0.lastLSN, $0.lastTime) }
    // Only what will not be taken back may leave.
    let barrier = Awaited()
    head.request(barrier.set) { batch in
      batch.wantsSynchronize = true
      batch.waiting.append(.init(result: .success(nil), completion: barrier.set))
    }
    if head.executor == nil { head.pump() }
    _ = try barrier.get()
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        path, environment: environment, mode: .readWrite(create: true))
      defer { directory.close() }
      let contents = try directory.contents()
      guard contents.segments.isEmpty, contents.checkpoints.isEmpty else {
        throw .io(operation: "backup", path: path, offset: nil, error: .exists)
      }
      _ = try CheckpointCoding.write(
        root, lsn: lsn, time: time, databaseID: databaseID, to: directory, isCancelled: { false })
      let log = try LogWriter.create(
        directory, databaseID: databaseID, after: lsn, time: time)
      try log.close()
    } catch {
      throw .storage(error)
    }
  }
}
