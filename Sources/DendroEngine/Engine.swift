package import DendroStorage
package import DendroTree
import Synchronization

/// A durable tree: admission, log, recovery and checkpoints of one directory.
///
/// Any thread may call anything, except where a member says otherwise. Reads
/// never wait for writers, and for the disk only if pages have to be read for the first time.
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
  let checkpointing: Checkpointing?
  /// Nil in memory.
  let history: History?
  /// Nil if this engine writes.
  let follower: Mutex<Follower?>
  /// Nil if this engine does not follow another process's writer.
  let logFollower: LogFollower?
  let environment: Environment
  let closing = Mutex(Closing())
  /// A child process has no commit thread.
  private let forkCount = ForkCount.current

  init(
    writing recovered: Recovery.Result, log: sending LogWriter, directory: DatabaseDirectory,
    path: String, options: EngineOptions, environment: Environment,
    sharing: Sharing? = nil
  ) {
    let databaseID = log.segment.databaseID
    self.options = options
    self.environment = environment
    self.path = path
    report = recovered.report
    self.databaseID = databaseID
    isReadOnly = false
    follower = Mutex(nil)
    logFollower = nil
    let disk = DiskState(
      directory: directory, log: log, replayedByteCount: recovered.replayedLogByteCount)
    pipeline = CommitPipeline(
      root: recovered.root, pages: recovered.pages, system: recovered.system,
      lastLSN: recovered.lastLSN, lastTime: recovered.lastTime, disk: disk, sharing: sharing,
      clock: environment.clock, options: options)
    let history = History(directory: directory, pipeline: pipeline, isReadOnly: false)
    self.history = history
    let checkpointing = Checkpointing(
      pipeline: pipeline, directory: directory, databaseID: databaseID, history: history,
      options: options, newest: recovered.checkpoint, unreadable: recovered.unreadable)
    self.checkpointing = checkpointing
    checkpointing.attach()
  }

  /// A tree without files.
  ///
  /// - Parameter state: shown, and never changed; nil for an empty tree that takes writes.
  init(
    inMemory options: EngineOptions, showing state: HistoryState? = nil, environment: Environment
  ) {
    var options = options
    if state != nil { options.execution = .inline }
    self.options = options
    self.environment = environment
    path = nil
    report = RecoveryReport()
    databaseID = nil
    isReadOnly = state != nil
    follower = Mutex(nil)
    logFollower = nil
    checkpointing = nil
    history = nil
    pipeline = CommitPipeline(
      root: state?.root ?? .empty, system: state?.roots.system ?? .empty,
      lastLSN: state?.lsn ?? .zero, lastTime: state?.time ?? 0,
      disk: nil, clock: environment.clock, options: options)
  }

  /// - Parameter position: published for what was recovered, if a writer is followed.
  init(
    readOnly recovered: Recovery.Result, directory: DatabaseDirectory, path: String,
    options: EngineOptions, environment: Environment, position: PublishedPosition? = nil
  ) {
    let interval = options.execution == .thread ? options.followInterval : nil
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
      root: recovered.root, lastLSN: recovered.lastLSN, lastTime: recovered.lastTime, disk: nil,
      clock: environment.clock, options: options)
    pipeline.replaceHead(recovered)
    let history = History(directory: directory, pipeline: pipeline, isReadOnly: true)
    self.history = history
    logFollower =
      directory.mode == .following
      ? LogFollower(history, recovered, position, interval: interval) : nil
    follower = Mutex(
      Follower(
        directory: directory, databaseID: recovered.databaseID,
        readsAll: options.loading == .whole))
  }

  deinit {
    // Closing is not waited for, since the last reference may be released on the commit thread, which does
    // it. The next opening of the directory waits instead.
    if isForked || !beginClosing() { return }
    // Under inline execution no turn follows: the lock is released with the file.
    guard pipeline.executor != nil else { return requestClose(writing: nil) { _ in } }
    EngineClosings.begin()
    requestClose(writing: nil) { _ in EngineClosings.end() }
  }

  // MARK: Writing

  /// Admits a write. Once this returns the head shows it, unless `completion` says that it failed. What a transaction's block
  /// writes is admitted once the transaction has ended.
  ///
  /// Above `EngineOptions.stallByteLimit` the caller waits for the disk; on a full disk the engine looks for
  /// room before it refuses a write. The first write to the second root waits for a new segment; submitted in a completion,
  /// it is admitted only after that.
  ///
  /// - Parameters:
  ///   - write: keeps the rules of the data model.
  ///   - completion: called once, after the write is as durable as the options ask, in the order of
  ///     the writes, on the commit thread or on that of a caller of `synchronize()`: it may not wait. If no batch
  ///     follows that could call it, because the engine refuses writes, the caller's thread does at once.
  ///     Without it, `options.unreportedFailure` gets a failure.
  /// - Complexity: O(log n) for a scalar, O(size) for a tree.
  package func submit(_ write: EncodedWrite, completion: Completion?) {
    if let refusal { return pipeline.report(refusal, completion) }
    pipeline.submit(write, completion: completion)
  }

  /// `submit` of a write that is admitted only to a state in which `judge` allows it.
  ///
  /// - Parameter completion: gets `.denied` if it does not: on the calling thread, or, if that was found out under the
  ///   lock, as completions are called.
  package func submit(_ write: EncodedWrite, judge: any WriteJudge, completion: Completion?) {
    if let refusal { return pipeline.report(refusal, completion) }
    pipeline.submit(write, judge: judge, completion: completion)
  }

  /// `submit` of a write that is lent for the time of the call: nothing is allocated for it, unless it has to wait.
  @inline(__always)
  package func submit(_ write: WriteView, completion: Completion?) {
    if let refusal { return pipeline.report(refusal, completion) }
    pipeline.submit(write, completion: completion)
  }

  /// `submit` of a write that exists as values. What is wrong with it is refused.
  package func submit(_ draft: Draft, completion: Completion?) {
    do throws(ValidationError) {
      submit(try EncodedWrite(validating: draft), completion: completion)
    } catch {
      pipeline.report(refusal ?? .validation(error), completion)
    }
  }

  /// `submit`, unless the write has to wait.
  ///
  /// - Returns: false if it has to wait. Then nothing was done, and `completion` is not called.
  package func submitAtOnce(
    _ write: EncodedWrite, judge: (any WriteJudge)? = nil, completion: Completion?
  ) -> Bool {
    if let refusal {
      pipeline.report(refusal, completion)
      return true
    }
    return pipeline.submitAtOnce(write, judge: judge, completion: completion)
  }

  /// `submit` that waits without blocking a thread.
  @concurrent package func submitSuspended(
    _ write: EncodedWrite, judge: (any WriteJudge)? = nil, completion: Completion?
  ) async {
    if let refusal { return pipeline.report(refusal, completion) }
    await pipeline.submitSuspended(write, judge: judge, completion: completion)
  }

  /// Admits a write, and waits without blocking a thread until it is as durable as the options ask.
  ///
  /// - Parameters:
  ///   - write: keeps the rules of the data model.
  ///   - judge: asked whether the write may be made.
  /// - Returns: the write's LSN; nil if it changed nothing.
  /// - Throws: why it failed; it was undone then. Cancellation does not undo a write.
  @discardableResult
  @concurrent package func write(
    _ write: EncodedWrite, judge: (any WriteJudge)? = nil
  ) async throws(EngineError) -> LogSequenceNumber? {
    if let refusal { throw refusal }
    return try await pipeline.write(write, judge: judge).get()
  }

  /// `write` of what exists as values.
  @discardableResult
  @concurrent package func write(_ draft: Draft) async throws(EngineError) -> LogSequenceNumber? {
    if let refusal { throw refusal }
    let encoded: EncodedWrite
    do throws(ValidationError) {
      encoded = try EncodedWrite(validating: draft)
    } catch {
      throw .validation(error)
    }
    return try await write(encoded)
  }

  /// Why this engine can never write; nil if it can.
  package var refusal: EngineError? {
    if isReadOnly { return .readOnly }
    return isForked ? .forked : nil
  }

  /// Why the next write would be refused; nil if it would not. A disk that was full may have room by now: a write
  /// looks for it.
  package var writeRefusal: EngineError? {
    refusal ?? pipeline.withAdmission { $0.phase.refusal }
  }

  // MARK: Reading

  /// Runs `body` on the head while no write is admitted. It has to be quick, and may not call the engine.
  package func withHead<R: Sendable>(_ body: (borrowing Node, LogSequenceNumber) -> R) -> R {
    pipeline.withAdmission { body($0.shownRoot, $0.shownLSN) }
  }

  /// Whether a write to the second root is admitted without a new segment of the log.
  package var takesSecondRoot: Bool { pipeline.withAdmission { $0.secondRoot == .present } }

  /// The node at a path of the second root, with every admitted write. Never waits for the disk.
  package func systemNode(at path: Path) -> Node {
    pipeline.withAdmission { $0.system.root.node(at: path) }
  }

  /// Whether this process is a fork of the one that opened it.
  var isForked: Bool { forkCount != ForkCount.current }

  /// The head as the only state that can be read.
  var headRange: HistoryBounds { pipeline.range }

  /// The head, to be read and judged while writes go on, its LSN, and the time that a write would get now.
  package func pin() -> PinnedHead {
    let now = pipeline.clock.now()
    return pipeline.withAdmission { admission in
      PinnedHead(
        node: HeadNode(admission.shownRoot, admission.pages), lsn: admission.shownLSN,
        time: admission.nextTime(now))
    }
  }

  /// The head and the LSN of its last write.
  package var head: (root: Node, lsn: LogSequenceNumber) { withHead { ($0, $1) } }

  /// Sets the observer of every commit from now on.
  package func setObserver(_ observer: (any CommitObserver)?) {
    pipeline.withAdmission { $0.observer = observer }
  }

  package func statistics() -> EngineStatistics {
    var statistics = pipeline.withAdmission { state in
      var statistics = state.statistics
      statistics.lastLSN = state.shownLSN
      statistics.durableLSN = state.durableLSN
      statistics.unreadChunkCount = state.pages?.unreadChunkCount ?? 0
      return statistics
    }
    checkpointing?.describe(&statistics)
    statistics.failureCounts = pipeline.instrumentation.failureCounts
    return statistics
  }

  /// The error of the first part of the data that could not be read; nil if all could be read so far.
  package var damage: EngineError? {
    pipeline.withAdmission { $0.pages?.firstDamage }.map { .storage($0) }
  }

  // MARK: Following another process's writer

  /// Whether the head follows another process's writer by itself.
  package var isFollowing: Bool { logFollower != nil }

  /// Why the writer cannot be followed any more: from then on the head stays as it is.
  package var followingFailure: EngineError? { history?.failure }

  /// Takes a part of what the writer has written since, in an engine that follows it: so much that its size is
  /// bounded.
  ///
  /// - Returns: whether there may be more.
  package func follow() throws(EngineError) -> Bool { try logFollower?.look() ?? false }

  /// Reads what the writer has written since, in a read-only engine; does nothing in others.
  ///
  /// - Returns: the last write that is now in the tree.
  @discardableResult
  package func refresh() throws(EngineError) -> LogSequenceNumber {
    if logFollower != nil {
      while try follow() {}
      return head.lsn
    }
    do throws(StorageError) {
      // Shown under the same lock: otherwise what another thread has read later might be shown before.
      let lsn = try follower.withLock { (follower) throws(StorageError) -> LogSequenceNumber? in
        guard let recovered = try follower?.recover() else { return nil }
        pipeline.replaceHead(recovered)
        return recovered.lastLSN
      }
      return lsn ?? head.lsn
    } catch {
      throw .storage(error)
    }
  }
}
