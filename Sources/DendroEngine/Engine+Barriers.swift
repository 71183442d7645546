package import DendroStorage

extension Engine {
  /// Waits until every write admitted so far is durable, whatever the durability.
  package func synchronize() throws(EngineError) {
    if isForked { throw .forked }
    try pipeline.synchronize()
  }

  /// `synchronize()` without blocking a thread.
  @concurrent package func synchronize() async throws(EngineError) {
    try await suspend(pipeline.requestSynchronize)
  }

  /// Begins a new segment of the log; everything admitted so far is durable once this returns.
  package func roll() throws(EngineError) {
    if isReadOnly { throw .readOnly }
    if isForked { throw .forked }
    try pipeline.roll()
  }

  /// Writes a checkpoint of the head beside the running writers and deletes what no opening needs any
  /// more.
  ///
  /// - Returns: once the checkpoint is durable. Nothing is done if nothing was written since.
  package func checkpoint() throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try wait { checkpointing.request($0) }
  }

  /// `checkpoint()` without blocking a thread.
  @concurrent package func checkpoint() async throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try await suspend { checkpointing.request($0) }
  }

  /// Removes the past: everything but a checkpoint of a moment within the call, which is read back
  /// first, and the writes since. What was removed from the tree before the call is in no file then.
  ///
  /// - Parameter purge: how long it waits for readers and archives. The checkpointing thread waits.
  /// - Throws: `.storage(.locked)` if a reader holds the directory; not everything was removed
  ///   then, and the next call removes the rest. `.storage(.archiveBehind)` if an archive that is being extended has
  ///   not copied all of the log.
  package func purgeHistory(_ purge: Purge = Purge()) throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try wait { checkpointing.request($0, purge: purge) }
  }

  /// `purgeHistory(_:)` without blocking a thread.
  @concurrent package func purgeHistory(_ purge: Purge = Purge()) async throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try await suspend { checkpointing.request($0, purge: purge) }
  }

  /// Writes a database of its own into the new directory at `path`: the tree as of one moment.
  ///
  /// - Parameters:
  ///   - path: absolute or relative to the working directory.
  ///   - parity: whether each file gets parity.
  /// - Throws: `.storage` if a database is at `path` already or it cannot be written; what was made
  ///   there is removed again then.
  package func backup(to path: String, parity: Bool = false) throws(EngineError) {
    if isForked { throw .forked }
    guard let databaseID else { throw .storage(.notFound(path: "memory")) }
    let absolute: String
    do throws(StorageError) {
      absolute = try WorkingDirectory.absolute(path)
    } catch {
      throw .storage(error)
    }
    try Backup.write(
      head: pipeline, databaseID: databaseID, to: absolute, parity: parity,
      environment: environment)
  }

  /// Writes a state of the past as a database of its own into the new directory at `path`.
  ///
  /// - Returns: the state; its time is 0 if that is not known.
  /// - Throws: as `state(at:)` and `backup(to:parity:)` do.
  package func restore(_ point: HistoryPoint, to path: String) throws(EngineError) -> HistoryState {
    guard let databaseID else { throw .noHistory }
    guard let state = try state(at: point) else { throw .closed }
    try Self.restore(state, databaseID: databaseID, to: path, environment: environment)
    return state
  }

  /// Writes a state, wherever it was read, as a database of its own into the new directory at `path`.
  ///
  /// - Throws: as `backup(to:parity:)` does.
  package static func restore(
    _ state: HistoryState, databaseID: DatabaseID, to path: String, environment: Environment
  ) throws(EngineError) {
    let absolute: String
    do throws(StorageError) {
      absolute = try WorkingDirectory.absolute(path)
    } catch {
      throw .storage(error)
    }
    var state = state
    state.roots.system = NumberedResults.restored(state.roots.system) {
      environment.randomness.next()
    }
    try Backup.write(state, databaseID: databaseID, to: absolute, environment: environment)
  }

  /// Commits all that waits, under inline execution. Returns once the open batch is empty.
  package func pump() {
    pipeline.groupCommit.pump()
    checkpointing?.runIfDue()
  }

  // MARK: Waiting

  func wait(_ request: (@escaping Completion) -> Void) throws(EngineError) {
    if isForked { throw .forked }
    try pipeline.wait(request)
  }

  func suspend(_ request: (@escaping Completion) -> Void) async throws(EngineError) {
    if isForked { throw .forked }
    try await pipeline.waitSuspended(request)
  }
}
