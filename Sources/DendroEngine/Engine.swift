package import DendroStorage
package import DendroTree
import Synchronization

/// A tree that survives: admission, log, recovery and checkpoints of one directory.
///
/// Any thread may call anything, except where a member says otherwise. Reads never wait for the disk.
package final class Engine: Sendable {
  package let options: EngineOptions
  /// What opening found.
  package let report: RecoveryReport
  /// Nil in memory.
  package let databaseID: DatabaseID?
  /// As given to `open`; nil in memory.
  package let path: String?
  package let isReadOnly: Bool
  let pipeline: CommitPipeline
  private let checkpointing: Checkpointing?
  /// Nil in memory.
  let history: History?
  /// Nil where this engine writes.
  private let follower: Mutex<Follower?>
  private let environment: Environment
  private let closing = Mutex(false)
  /// A child process has no thread that would ever answer it.
  private let forkCount = ForkCount.current

  // MARK: Opening

  /// Opens or creates the database in the directory at `path`, replaying what the newest checkpoint
  /// does not hold.
  ///
  /// - Parameters:
  ///   - path: absolute, or relative to the working directory; created with mode 0700 where missing,
  ///     its parent must exist.
  ///   - progress: told how far it has come, on the calling thread, at most once a mebibyte.
  /// - Throws: `.storage` where the files cannot be used (damaged, locked, refused by the system);
  ///   nothing was changed then.
  /// - Complexity: O(size of the checkpoint + log since). Waits for the disk on the calling thread.
  package static func open(
    at path: String, options: EngineOptions = EngineOptions(), environment: Environment = .system,
    mode: Mode = .readWrite, progress: (@Sendable (RecoveryProgress) -> Void)? = nil
  ) throws(EngineError) -> Engine {
    do throws(StorageError) {
      let started = ContinuousClock.now
      let path = try WorkingDirectory.absolute(path)
      let directory = try DatabaseDirectory.open(
        path, environment: environment,
        mode: mode == .readOnly ? .readOnly : .readWrite(create: mode == .readWrite))
      do throws(StorageError) {
        var recovery = Recovery(directory: directory, progress: progress)
        var recovered = try recovery.run()
        if mode == .readOnly {
          recovered.report.elapsed = ContinuousClock.now - started
          return Engine(readOnly: recovered, directory, path, options, environment)
        }
        let log = try recovered.openLog(directory, options)
        recovered.report.elapsed = ContinuousClock.now - started
        let engine = Engine(recovered, log, directory, path, options, environment)
        try engine.start()
        return engine
      } catch {
        directory.close()
        throw error
      }
    } catch {
      throw .storage(error)
    }
  }

  /// A tree that lives only as long as this object. Where the system has no thread for it, the log is
  /// told and the engine is closed from the beginning.
  package static func inMemory(
    options: EngineOptions = EngineOptions(), environment: Environment = .system
  ) -> Engine {
    let engine = Engine(inMemory: options, environment)
    do {
      try engine.start()
    } catch {
      engine.pipeline.hooks.tell(
        LogEvent(.error, "a database in memory cannot run", ["error": "\(error)"]))
    }
    return engine
  }

  package enum Mode: Hashable, Sendable {
    /// Created where missing.
    case readWrite
    /// Must exist already.
    case readWriteExisting
    /// Changes nothing, not even a torn tail; works beside a writer.
    case readOnly
  }

  private init(
    _ recovered: Recovery.Result, _ log: sending LogWriter, _ directory: DatabaseDirectory,
    _ path: String, _ options: EngineOptions, _ environment: Environment
  ) {
    let databaseID = log.segment.databaseID
    self.options = options
    self.environment = environment
    self.path = path
    report = recovered.report
    self.databaseID = databaseID
    isReadOnly = false
    follower = Mutex(nil)
    let store = Store(
      directory: directory, log: log,
      replayedByteCount: recovered.replayedLogByteCount)
    pipeline = CommitPipeline(
      root: recovered.root, lastLSN: recovered.lastLSN, lastTime: recovered.lastTime,
      store: store, clock: environment.clock, options: options)
    let history = History(directory: directory, pipeline: pipeline, isReadOnly: false)
    self.history = history
    let checkpointing = Checkpointing(
      pipeline: pipeline, directory: directory, databaseID: databaseID, history: history,
      options: options, newest: recovered.checkpoint, unreadable: recovered.unreadable)
    self.checkpointing = checkpointing
    checkpointing.attach()
  }

  private init(inMemory options: EngineOptions, _ environment: Environment) {
    self.options = options
    self.environment = environment
    path = nil
    report = RecoveryReport()
    databaseID = nil
    isReadOnly = false
    follower = Mutex(nil)
    checkpointing = nil
    history = nil
    pipeline = CommitPipeline(
      root: .empty, lastLSN: .zero, lastTime: 0, store: nil, clock: environment.clock,
      options: options)
  }

  private init(
    readOnly recovered: Recovery.Result, _ directory: DatabaseDirectory, _ path: String,
    _ options: EngineOptions, _ environment: Environment
  ) {
    var options = options
    options.execution = .inline
    self.options = options
    self.environment = environment
    self.path = path
    report = recovered.report
    databaseID = recovered.databaseID
    isReadOnly = true
    checkpointing = nil
    pipeline = CommitPipeline(
      root: recovered.root, lastLSN: recovered.lastLSN, lastTime: recovered.lastTime, store: nil,
      clock: environment.clock, options: options)
    pipeline.knowDurable(upTo: recovered.end?.durableUpTo ?? recovered.lastLSN)
    history = History(directory: directory, pipeline: pipeline, isReadOnly: true)
    follower = Mutex(Follower(directory: directory, databaseID: recovered.databaseID))
  }

  private func start() throws(StorageError) {
    guard let executor = pipeline.executor else { return }
    do {
      try executor.start { [pipeline] in pipeline.cycle() }
    } catch {
      pipeline.giveUp()
      throw .io(operation: "start a thread", path: path ?? "memory", offset: nil, error: error)
    }
  }

  deinit {
    // Not waited for: the last reference may go on the very thread that would have to be waited for.
    if !isForked, beginClosing() {
      requestClose(writing: nil) { _ in }
    }
  }

  // MARK: Writing

  /// Admits a write. Once this returns the head shows it, unless `completion` says that it failed.
  ///
  /// - Parameters:
  ///   - draft: validated by the caller as far as keys and values go; conflicting update paths and
  ///     the depth are checked here.
  ///   - completion: called once, after the write is as durable as the options ask, in the order of
  ///     the writes, on the engine's thread: it may not wait. Nil: a failure goes to
  ///     `options.unreportedFailure`.
  /// - Complexity: O(log n) for a scalar, O(size) for a tree.
  package func submit(_ draft: Draft, completion: Completion?) {
    if let refusal = refusal(of: draft) { return refuse(refusal, completion) }
    pipeline.submit(draft, completion: completion)
  }

  /// `submit`, and waits until the write is as durable as the options ask, without holding a thread. Past
  /// `EngineOptions.backlogByteLimit` it is admitted only once there is room.
  ///
  /// - Returns: the write's number, nil where it changed nothing.
  /// - Throws: why it failed; it was taken back then. Cancellation does not take a write back.
  @discardableResult
  package func write(_ draft: Draft) async throws(EngineError) -> LogSequenceNumber? {
    if let refusal = refusal(of: draft) { throw refusal }
    return try await pipeline.write(draft).get()
  }

  private func refusal(of draft: Draft) -> EngineError? {
    if let refusal { return refusal }
    do throws(ValidationError) {
      try draft.write.validate()
      return nil
    } catch {
      return .validation(error)
    }
  }

  /// Why nothing can be written through this engine, whatever becomes of it; nil where it can.
  package var refusal: EngineError? {
    if isReadOnly { return .readOnly }
    return isForked ? .forked : nil
  }

  private func refuse(_ error: EngineError, _ completion: Completion?) {
    if let completion {
      completion(.failure(error))
    } else {
      options.unreportedFailure?(error, .zero)
    }
  }

  // MARK: Reading

  /// Runs `body` on the head while no write is admitted. Be quick; do not call the engine.
  package func withHead<R: Sendable>(_ body: (borrowing Node, LogSequenceNumber) -> R) -> R {
    pipeline.withAdmission { body($0.root, $0.lastLSN) }
  }

  /// The node at `path` now. It stays as it is, also after `close()`.
  package func view(at path: Path) -> Node { withHead { root, _ in root.node(at: path) } }

  /// Whether this process is a fork of the one that opened it.
  var isForked: Bool { forkCount != ForkCount.current }

  /// The head as the only state that can be read.
  var headRange: HistoryRange { pipeline.range }

  /// The head and the number of its last write.
  package var head: (root: Node, lsn: LogSequenceNumber) { withHead { ($0, $1) } }

  /// Who is told of every commit from now on; replaces who was told before.
  package func setObserver(_ observer: (any CommitObserver)?) {
    pipeline.withAdmission { $0.observer = observer }
  }

  package func statistics() -> EngineStatistics {
    var statistics = pipeline.withAdmission { state in
      var statistics = state.statistics
      statistics.lastLSN = state.lastLSN
      statistics.durableLSN = state.durable
      return statistics
    }
    checkpointing?.describe(&statistics)
    return statistics
  }

  // MARK: Barriers

  /// Waits until every write admitted so far is durable, whatever the durability.
  package func synchronize() throws(EngineError) { try wait { self.requestSynchronize($0) } }

  /// `synchronize()` without holding a thread.
  package func synchronize() async throws(EngineError) {
    try await suspend { self.requestSynchronize($0) }
  }

  /// Begins a new segment of the log; everything admitted so far is durable once this returns.
  package func roll() throws(EngineError) {
    if isReadOnly { throw .readOnly }
    try wait { completion in pipeline.request(completion) { $0.batch.rolls.append(completion) } }
  }

  /// Writes a checkpoint of the head beside the running writers and deletes what no opening needs any
  /// more.
  ///
  /// - Returns: once the checkpoint is durable. Nothing is done where nothing was written since.
  package func checkpoint() throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try wait { checkpointing.request($0) }
  }

  /// `checkpoint()` without holding a thread.
  package func checkpoint() async throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try await suspend { checkpointing.request($0) }
  }

  /// Removes the past: everything but a checkpoint of a moment within the call, which is read back
  /// first, and the writes since. What was removed from the tree before the call is in no file then.
  ///
  /// - Throws: `.storage(.locked)` where a reader holds the directory; not everything was removed
  ///   then, and the next call goes on.
  package func purgeHistory() throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try wait { checkpointing.request($0, purges: true) }
  }

  /// `purgeHistory()` without holding a thread.
  package func purgeHistory() async throws(EngineError) {
    if isReadOnly { throw .readOnly }
    guard let checkpointing else { return }
    try await suspend { checkpointing.request($0, purges: true) }
  }

  /// Writes a database of its own into the new directory at `path`: the tree as of one moment.
  ///
  /// - Throws: `.storage` where a database is at `path` already or it cannot be written; what was made
  ///   there is removed again then.
  package func backup(to path: String) throws(EngineError) {
    if isForked { throw .forked }
    guard let databaseID else { throw .storage(.notFound(path: "memory")) }
    let absolute: String
    do throws(StorageError) {
      absolute = try WorkingDirectory.absolute(path)
    } catch {
      throw .storage(error)
    }
    try Backup.write(
      head: pipeline, databaseID: databaseID, to: absolute, environment: environment)
  }

  /// Does what is waiting for the disk, under inline execution. Returns once nothing waits.
  package func pump() {
    pipeline.pump()
    checkpointing?.runIfDue()
  }

  // MARK: Closing

  /// Takes everything admitted to the disk, synchronizes, lets the directory go.
  ///
  /// - Parameter last: admitted as the last write, whether or not a transaction's block is running, on
  ///   this thread or another; a failure goes to `options.unreportedFailure`.
  /// - Throws: where the disk refuses; the engine is closed nevertheless. Later writes get `.closed`;
  ///   views stay valid. Closing twice does nothing.
  package func close(writing last: Draft? = nil) throws(EngineError) {
    guard beginClosing() else { return refuse(last) }
    let last = admissible(last)
    try wait { self.requestClose(writing: last, $0) }
  }

  /// `close(writing:)` without holding a thread.
  package func close(writing last: Draft? = nil) async throws(EngineError) {
    guard beginClosing() else { return refuse(last) }
    let last = admissible(last)
    try await suspend { self.requestClose(writing: last, $0) }
  }

  private func refuse(_ last: Draft?) { if last != nil { refuse(.closed, nil) } }

  private func admissible(_ last: Draft?) -> Draft? {
    guard let last else { return nil }
    guard let refusal = refusal(of: last) else { return last }
    refuse(refusal, nil)
    return nil
  }

  private func requestSynchronize(_ completion: @escaping Completion) {
    pipeline.request(completion) { state in
      state.batch.wantsSynchronize = true
      state.batch.waiting.append(.init(result: .success(nil), completion: completion))
    }
  }

  private func requestClose(writing last: Draft?, _ completion: @escaping Completion) {
    history?.close()
    follower.withLock { follower in
      follower?.close()
      follower = nil
    }
    let pipeline = pipeline
    if let checkpointing {
      checkpointing.stop { pipeline.requestClose(writing: last, completion) }
    } else {
      pipeline.requestClose(writing: last, completion)
    }
  }

  /// - Returns: whether this is the first time.
  private func beginClosing() -> Bool {
    closing.withLock { isClosing in
      defer { isClosing = true }
      return !isClosing
    }
  }

  private func wait(_ request: (@escaping Completion) -> Void) throws(EngineError) {
    if isForked { throw .forked }
    let outcome = Awaited()
    request { outcome.set($0) }
    if pipeline.executor == nil { pipeline.pump() }
    _ = try outcome.get()
  }

  private func suspend(_ request: (@escaping Completion) -> Void) async throws(EngineError) {
    if isForked { throw .forked }
    let result = await withUnsafeContinuation { continuation in
      request { continuation.resume(returning: $0) }
      if pipeline.executor == nil { pipeline.pump() }
    }
    _ = try result.get()
  }

  // MARK: Following another process's writer

  /// Opened for reading only: takes over what the writer has written since. Elsewhere does nothing.
  ///
  /// - Returns: the number of the last write that is now in the tree.
  @discardableResult
  package func refresh() throws(EngineError) -> LogSequenceNumber {
    do throws(StorageError) {
      let recovered = try follower.withLock { (follower) throws(StorageError) in
        try follower?.recover()
      }
      guard let recovered else { return head.lsn }
      pipeline.replaceHead(root: recovered.root, lsn: recovered.lastLSN, time: recovered.lastTime)
      pipeline.knowDurable(upTo: recovered.end?.durableUpTo ?? recovered.lastLSN)
      return recovered.lastLSN
    } catch {
      throw .storage(error)
    }
  }
}
