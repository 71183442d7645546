import DendroStorage
import DendroTree
import Synchronization

/// Takes checkpoints, one at a time, on a thread of its own: writes an immutable root to a file while writers
/// continue. The engine requests them; the commit thread does so once the log has grown enough.
final class Checkpointing: Sendable {
  let pipeline: CommitPipeline
  let directory: DatabaseDirectory
  private let databaseID: DatabaseID
  let history: History
  let options: EngineOptions
  let state: Mutex<State>
  private let executor: BlockingExecutor?

  struct State {
    var newest: Recovery.CheckpointPlace?
    /// Checkpoints that retention does not count: those that cannot be read, and those whose names may not be durable.
    var uncounted: Set<LogSequenceNumber>
    var checkpointCount: UInt64 = 0
    var isWanted = false
    /// Of the waiting calls that remove history.
    var purge: Purge?
    var isStopped = false
    var isStarted = false
    var waiting: [Completion] = []
    /// Called once the thread has ended.
    var stopped: (@Sendable () -> Void)?
    /// After a failure, the bytes of log at which the next automatic checkpoint is tried: a full disk does
    /// not get one attempt for each batch.
    var logBytesMin: UInt64 = 0
    var logBytes: UInt64 = 0

    mutating func takeWaiting() -> [Completion] {
      defer { waiting = [] }
      return waiting
    }
  }

  init(
    pipeline: CommitPipeline, directory: DatabaseDirectory, databaseID: DatabaseID,
    history: History, options: EngineOptions, newest: Recovery.CheckpointPlace?,
    unreadable: Set<LogSequenceNumber>
  ) {
    self.pipeline = pipeline
    self.directory = directory
    self.databaseID = databaseID
    self.history = history
    self.options = options
    state = Mutex(State(newest: newest, uncounted: unreadable))
    // Where processors are short, writers come first: a checkpoint then gets a quarter of one, not half.
    executor =
      options.execution == .thread ? BlockingExecutor(name: "dendro-chkpt", niceness: 5) : nil
  }

  /// Begins to take automatic checkpoints.
  func attach() {
    guard options.checkpointFactor > 0 else { return }
    pipeline.groupCommit.disk.withLock { disk in
      disk?.logGrowthHandler = { [weak self] in self?.consider($0) }
    }
  }

  func describe(_ statistics: inout EngineStatistics) {
    state.withLock { state in
      statistics.checkpointCount = state.checkpointCount
      statistics.checkpointLSN = state.newest?.lsn ?? .zero
      statistics.checkpointByteCount = state.newest?.byteCount ?? 0
    }
  }

  // MARK: When

  private func consider(_ logBytes: UInt64) {
    let isDue = state.withLock { state -> Bool in
      let size = Double(state.newest?.byteCount ?? 0)
      state.logBytes = logBytes
      guard !state.isWanted, !state.isStopped, logBytes >= options.checkpointByteMin,
        Double(logBytes) >= options.checkpointFactor * size, logBytes >= state.logBytesMin
      else { return false }
      state.isWanted = true
      return true
    }
    if isDue { wake() }
  }

  /// Takes a checkpoint on the executor's thread (under inline execution on the caller's), and calls
  /// `completion`.
  ///
  /// - Parameter purge: how everything older is removed after it; nil if it is not.
  func request(_ completion: @escaping Completion, purge: Purge? = nil) {
    let isStopped = state.withLock { state -> Bool in
      if state.isStopped { return true }
      if let purge { state.purge = purge.merged(with: state.purge) }
      state.waiting.append(completion)
      return false
    }
    if isStopped { return completion(.failure(.closed)) }
    wake()
  }

  /// Takes the automatic checkpoint that a turn asked for, under inline execution.
  func runIfDue() {
    if executor == nil { work() }
  }

  /// Refuses later checkpoints, ends the running one at its next chunk, and calls `then` after that: the
  /// directory may not be released before. Returns at once. Call once.
  func stop(then: @escaping @Sendable () -> Void) {
    let isStarted = state.withLock { state -> Bool in
      state.isStopped = true
      if state.isStarted { state.stopped = then }
      return state.isStarted
    }
    guard isStarted else { return then() }
    executor?.wake()
  }

  private func wake() {
    guard let executor else { return work() }
    let (starts, late) = state.withLock { state -> (Bool, [Completion]) in
      if !state.isStarted, state.isStopped { return (false, state.takeWaiting()) }
      let starts = !state.isStarted
      state.isStarted = true
      return (starts, [])
    }
    for completion in late { completion(.failure(.closed)) }
    guard starts else { return executor.wake() }
    do {
      // The thread keeps this object until it is stopped.
      try executor.start { self.turn() }
    } catch {
      withoutThread(error)
    }
  }

  /// Fails all waiting calls, since no thread could be started. The next request tries again.
  private func withoutThread(_ error: SystemError) {
    let (waiting, stopped) = state.withLock { state in
      state.isStarted = false
      state.isWanted = false
      defer { state.stopped = nil }
      return (state.takeWaiting(), state.stopped)
    }
    let refusal = EngineError.storage(
      .io(operation: "start a thread", path: directory.path, offset: nil, error: error))
    pipeline.instrumentation.record(.noCheckpoint(refusal))
    for completion in waiting { completion(.failure(refusal)) }
    stopped?()
  }

  private func turn() -> BlockingExecutor.Pause? {
    work()
    let (stopped, late) = state.withLock { state -> ((@Sendable () -> Void)?, [Completion]) in
      guard let stopped = state.stopped else { return (nil, []) }
      state.stopped = nil
      return (stopped, state.takeWaiting())
    }
    guard let stopped else { return .untilWoken }
    // Requests that came during the last checkpoint.
    for completion in late { completion(.failure(.closed)) }
    stopped()
    return nil
  }

  private func work() {
    let (isWanted, purge, isStopped, waiting) = state.withLock { state in
      let taken = (state.isWanted, state.purge, state.isStopped, state.waiting)
      state.waiting = []
      state.purge = nil
      return taken
    }
    guard isWanted || !waiting.isEmpty else { return }
    var result: Result<LogSequenceNumber?, EngineError> = .failure(.closed)
    if !isStopped {
      do throws(EngineError) {
        // Ends the segment, so that the whole log until now can be removed.
        if purge != nil { try pipeline.roll() }
        try take()
        if let purge { try run(purge) }
        result = .success(nil)
        state.withLock { $0.logBytesMin = 0 }
      } catch {
        result = .failure(error)
        state.withLock { state in
          let (sum, isOver) = state.logBytes.addingReportingOverflow(
            max(options.checkpointByteMin, 1 << 20))
          state.logBytesMin = isOver ? .max : sum
        }
        pipeline.instrumentation.record(.noCheckpoint(error))
      }
    }
    state.withLock { $0.isWanted = false }
    for completion in waiting { completion(result) }
  }

  // MARK: How

  private func take() throws(EngineError) {
    // The root is taken under the lock under which the roll is added: so all of its writes are durable
    // before the checkpoint is written, and none is one that a failing disk undoes. The new segment begins
    // at the checkpoint, so that retention can later remove those before it.
    let newest = state.withLock { $0.newest?.lsn }
    var taken: HistoryState?
    let rolled = try pipeline.roll(after: { admission in
      guard admission.lastLSN > .zero, admission.lastLSN != newest else { return false }
      taken = HistoryState(
        roots: admission.roots, lsn: admission.lastLSN, time: admission.lastTime)
      return true
    })
    guard let taken else { return }
    let lsn = taken.lsn
    let started = ContinuousClock.now
    // Where the directory cannot be synchronized, a power loss may take the name that the file has got.
    state.withLock { _ = $0.uncounted.insert(lsn) }
    do throws(StorageError) {
      let byteCount = try CheckpointCoding.write(
        taken.roots, lsn: lsn, time: taken.time, databaseID: databaseID,
        chunkByteLimit: options.checkpointChunkByteLimit, to: directory,
        isCancelled: { self.state.withLock { $0.isStopped } })
      guard let byteCount else { throw .ownershipLost(path: directory.path, reason: "closed") }
      state.withLock { state in
        state.newest = Recovery.CheckpointPlace(lsn: lsn, byteCount: byteCount)
        state.uncounted.remove(lsn)
        state.checkpointCount += 1
      }
      pipeline.groupCommit.disk.withLock { $0?.checkpointed(segmentsUpTo: rolled ?? lsn) }
      pipeline.instrumentation.record(
        LogEvent(
          .info, "checkpoint taken",
          ["lsn": lsn.description, "bytes": String(byteCount)]))
      pipeline.instrumentation.record(
        Metric("dendro.checkpoint.seconds", .timer, (ContinuousClock.now - started).inSeconds))
      try retain()
    } catch {
      if state.withLock({ $0.isStopped }) { throw .closed }
      throw .storage(error)
    }
  }

  private func retain() throws(StorageError) {
    var rules = Retention.Rules()
    rules.history = options.history
    rules.now = pipeline.clock.now()
    // History does not need as many checkpoints as a quick opening does.
    rules.checkpointFactor = options.checkpointFactor > 0 ? max(1, options.checkpointFactor) : 0
    rules.checkpointByteMin = options.checkpointByteMin
    let uncounted = state.withLock { $0.uncounted }
    try history.pins.withPins { (rebuilding, followed) throws(StorageError) in
      rules.rebuilding = rebuilding
      rules.followed = try followed + directory.publishedPositions()
      guard try !Retention.apply(directory, rules, uncounted: uncounted) else { return }
      pipeline.instrumentation.record(
        LogEvent(
          .warning, "a reader keeps files that are no longer needed", ["path": directory.path]))
    }
  }
}

extension Duration {
  /// Seconds, rounded.
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
