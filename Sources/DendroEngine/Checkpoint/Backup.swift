import DendroStorage
import DendroTree

/// A database of its own from one moment of a running one.
enum Backup {
  static func write(
    head: CommitPipeline, databaseID: DatabaseID, to path: String, environment: Environment
  ) throws(EngineError) {
    // Only what will not be taken back may leave: taken in the same moment in which the barrier is put
    // behind it.
    var taken: (root: Node, lsn: LogSequenceNumber, time: Int64)?
    let barrier = Awaited()
    head.request(barrier.set) { state in
      taken = (state.root, state.lastLSN, state.lastTime)
      state.batch.wantsSynchronize = true
      state.batch.waiting.append(.init(result: .success(nil), completion: barrier.set))
    }
    if head.executor == nil { head.pump() }
    _ = try barrier.get()
    guard let (root, lsn, time) = taken else { return }
    do throws(StorageError) {
      var footprint = try Footprint(of: path, environment.fileSystem)
      do throws(StorageError) {
        let directory = try DatabaseDirectory.open(
          path, environment: environment, mode: .readWrite(create: true))
        defer { directory.close() }
        guard try directory.contents().isEmpty else {
          throw .io(operation: "backup", path: path, offset: nil, error: .exists)
        }
        try footprint.begin()
        _ = try CheckpointCoding.write(
          root, lsn: lsn, time: time, databaseID: databaseID, to: directory,
          isCancelled: { false })
        let log = try LogWriter.create(
          directory, databaseID: databaseID, after: lsn, time: time)
        try log.close()
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
