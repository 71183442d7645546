import DendroStorage
import DendroTree
import Synchronization

/// Writes the open batch to the disk, one turn after the other: on the commit thread, or on that of a caller who
/// waits for the batch and leads. Under inline execution on the caller's alone.
///
/// `CommitSchedule` says which thread has the turn, and when. Within the turn, up to the completions, a thread holds
/// the lock of the disk's state, and takes the admission lock for moments. Writers only ever take the admission lock.
final class GroupCommit: Sendable {
  let admission: AdmissionLock
  /// Nil for an engine that decides alone which batches stand.
  let shared: (any SharedLog)?
  let options: EngineOptions
  /// A turn holds the lock while it works on the disk, a checkpoint for a moment.
  /// Nil for a database in memory, and once it is closed.
  let disk: Mutex<DiskState?>
  /// Wakes tasks that wait for more durable writes.
  let durableSignal = DurableSignal()
  let stall: WriteStall
  private let instrumentation: Instrumentation

  init(
    admission: AdmissionLock, stall: WriteStall, disk: consuming sending DiskState?,
    shared: (any SharedLog)?, instrumentation: Instrumentation, options: EngineOptions
  ) {
    self.admission = admission
    self.shared = shared
    self.stall = stall
    self.disk = Mutex(disk)
    self.instrumentation = instrumentation
    self.options = options
  }

  /// From which on a synchronize has a line in the log.
  private static let longFlush = Duration.seconds(1)

  // MARK: Turns

  /// Has one turn on the commit thread, if the schedule gives it one.
  ///
  /// - Returns: how long the thread sleeps before it asks for the next one, if it is not woken; nil once closed.
  func runTurn() -> BlockingExecutor.Pause? {
    var batch: Batch?
    let start = admission.withLockInTurn {
      $0.beginTurn(taking: &batch, by: BlockingExecutor.currentThreadID, at: .now)
    }
    let due: CommitSchedule.LogDue
    switch start {
    case .commit(let turn): due = commit(&batch, turn)
    case .tend: due = withDisk(tend)
    case .sleep(let pause): return pause
    case .end: return nil
    }
    return admission.withLockInTurn { $0.endTurn(&batch, due: due, at: .now) }
  }

  /// Has the turn that a caller was given, on its thread. Saves it the way to the commit thread and back.
  ///
  /// - Parameter batch: what it has taken.
  /// - Returns: whether it wakes the commit thread.
  func lead(_ turn: CommitSchedule.Turn, with batch: inout Batch?) -> Bool {
    let due = commit(&batch, turn)
    return admission.withLockInTurn { $0.endLead(&batch, due: due, at: .now) }
  }

  /// Commits until the open batch is empty: replaces the thread under inline execution.
  func pump() {
    repeat {
      var batch: Batch?
      let turn = admission.withLockInTurn { $0.takeInline(&batch) }
      if let turn {
        _ = commit(&batch, turn)
        admission.withLockInTurn { $0.giveBack(&batch) }
      } else {
        _ = withDisk(tend)
      }
    } while admission.withLockInTurn { $0.hasWorkInline }
  }

  /// Whether the caller has the turn: a completion that writes cannot wait for the disk then.
  var isCommitting: Bool {
    admission.withLockInTurn { $0.schedule.committer } == BlockingExecutor.currentThreadID
  }

  /// Commits a batch and calls its completions.
  private func commit(
    _ batch: inout Batch?, _ turn: CommitSchedule.Turn
  ) -> CommitSchedule.LogDue {
    guard var taken = batch.take() else { preconditionFailure("a turn has a batch") }
    let due = withDisk { disk, effects in
      if turn.probes { probe(disk, &effects) }
      stall.end()
      commit(&taken, turn, &disk, &effects)
      taken.removeAll()
    }
    batch = consume taken
    return due
  }

  /// Calls `body`, which works on the disk, and then, without a lock, the completions.
  private func withDisk(
    _ body: (inout DiskState?, inout TurnEffects) -> Void
  ) -> CommitSchedule.LogDue {
    let effects = disk.withLock { disk in
      var effects = TurnEffects()
      body(&disk, &effects)
      effects.due = disk?.due(options) ?? .init()
      return effects
    }
    finish(effects)
    return effects.due
  }

  /// Calls `body`, which takes what other engines have written, and then does what a turn ends with.
  func withSharedDisk<R>(_ body: (inout DiskState?, inout TurnEffects) -> R) -> R {
    var result: R?
    _ = withDisk { result = body(&$0, &$1) }
    guard let result else { preconditionFailure("the body was called") }
    return result
  }

  /// Does what a turn ends with, without a lock.
  private func finish(_ effects: TurnEffects) {
    // Before the completions: who learns of a failure by one of them finds it counted.
    if !effects.events.isEmpty { instrumentation.record(events: effects.events, metrics: []) }
    for pending in effects.completions { pending.completion(pending.result) }
    for (error, lsn) in effects.unreported { options.unreportedFailure?(error, lsn) }
    if !effects.metrics.isEmpty {
      instrumentation.record(events: [], metrics: effects.metrics + (options.levels?() ?? []))
    }
    if durableSignal.hasWaiters {
      durableSignal.advance(to: admission.withLockInTurn { $0.durableLSN })
    }
    if let (handler, byteCount) = effects.logGrowth { handler(byteCount) }
  }

  // MARK: One batch

  private func commit(
    _ batch: inout Batch, _ turn: CommitSchedule.Turn, _ disk: inout DiskState?,
    _ effects: inout TurnEffects
  ) {
    let started = instrumentation.wantsMetrics ? ContinuousClock.now : nil
    let (appendTime, sharingRefusal) = share(batch)
    let refusal: EngineError?
    if let sharingRefusal {
      refusal = withhold(&batch, sharingRefusal, &effects)
    } else {
      refusal = write(&batch, turn, appendTime, &disk, &effects)
    }
    if refusal == nil {
      if let started {
        effects.metrics.append(
          Metric("dendro.commit.seconds", .timer, (ContinuousClock.now - started).inSeconds))
      }
      roll(batch, &disk, &effects)
    }
    if !batch.closes.isEmpty { close(batch, refusal, &disk, &effects) }
  }

  /// Writes a batch to the disk and acknowledges it.
  ///
  /// - Parameter appendTime: how long the shared log took for it; nil if that has none of it.
  /// - Returns: why the disk has refused it; its writes are undone then.
  private func write(
    _ batch: inout Batch, _ turn: CommitSchedule.Turn, _ appendTime: Duration?,
    _ disk: inout DiskState?, _ effects: inout TurnEffects
  ) -> EngineError? {
    let end = disk?.log.segmentByteCount
    var start: UInt64?
    do throws(StorageError) {
      try disk?.append(batch, delayedSince: turn.delayedSince)
      start = end
      var flush: Duration?
      if batch.wantsSynchronize || disk?.isSynchronizeDue(options) == true {
        flush = try disk?.synchronize()
      }
      if let flush {
        if instrumentation.wantsMetrics {
          effects.metrics = [Metric("dendro.synchronize.seconds", .timer, flush.inSeconds)]
        }
        if flush >= Self.longFlush {
          effects.events.append(
            LogEvent(
              .warning, "the disk took long to synchronize", ["seconds": "\(flush.inSeconds)"]))
        }
      }
      // What callers wait for is the longer of the two. An outage is no measure of the next append.
      acknowledge(
        &batch, appendTime.map { min($0, .milliseconds(100)) } ?? flush, disk, &effects)
      return nil
    } catch {
      guard shared != nil else {
        return refuse(&batch, error, appendedFrom: start, disk, &effects)
      }
      keep(&batch, withoutCopy: error, disk, &effects)
      return nil
    }
  }

  func acknowledge(
    _ batch: inout Batch, _ flush: Duration?, _ disk: DiskState?, _ effects: inout TurnEffects
  ) {
    let recordCount = UInt64(batch.encoder.records.count)
    // What a shared log has is durable.
    let durableLSN = shared == nil ? disk?.log.durableUpTo : nil
    let logByteCount = disk?.log.storedByteCount ?? 0
    let logBytesSinceCheckpoint = disk?.logBytesSinceCheckpoint ?? 0
    let synchronizeCount = disk?.synchronizeCount ?? 0
    var wasFull = false
    let (waitingByteCount, unreadChunkCount) = admission.withLockInTurn { admission in
      // A turn that has only looked for room says nothing of it.
      if recordCount > 0 { swap(&wasFull, &admission.isFullReported) }
      admission.acknowledge(&batch, durableLSN: durableLSN, flush: flush, at: .now)
      admission.statistics.batchCount += 1
      admission.statistics.recordCount += recordCount
      admission.statistics.logByteCount = logByteCount
      admission.statistics.logBytesSinceCheckpoint = logBytesSinceCheckpoint
      admission.statistics.synchronizeCount = synchronizeCount
      guard instrumentation.wantsMetrics else { return (0, 0) }
      return (admission.batch.byteCount, admission.pages?.unreadChunkCount ?? 0)
    }
    if wasFull {
      effects.events.append(LogEvent(.info, "the disk has room again: writes are taken"))
    }
    swap(&effects.completions, &batch.completions)
    // If a probe has poisoned the log, it put completions of the open batch here: they come behind.
    effects.completions += batch.completions
    if let handler = disk?.logGrowthHandler, logBytesSinceCheckpoint >= options.checkpointByteMin {
      effects.logGrowth = (handler, logBytesSinceCheckpoint)
    }
    if instrumentation.wantsMetrics {
      let writeCount = batch.writeCount + batch.countInMemory
      effects.metrics += [
        Metric("dendro.commit.batches", .counter, 1),
        Metric("dendro.commit.writes", .counter, Double(writeCount)),
        Metric("dendro.commit.waiting.bytes", .gauge, Double(waitingByteCount)),
        Metric("dendro.log.bytes", .gauge, Double(logByteCount)),
        Metric("dendro.checkpoint.unread.chunks", .gauge, Double(unreadChunkCount)),
      ]
    }
  }

  private func roll(
    _ batch: borrowing Batch, _ disk: inout DiskState?, _ effects: inout TurnEffects
  ) {
    guard let log = disk?.log else { return effects.complete(batch.rolls, .success(nil)) }
    guard !batch.rolls.isEmpty || log.wantsRoll else { return }
    do throws(StorageError) {
      try disk?.roll(
        time: admission.withLockInTurn { $0.lastTime }, addsSecondRoot: batch.addsSecondRoot)
      noteDurable(log)
      if batch.addsSecondRoot { admission.withLockInTurn { $0.secondRoot = .present } }
      effects.complete(batch.rolls, .success(log.lastLSN))
    } catch {
      if batch.addsSecondRoot { admission.withLockInTurn { $0.secondRoot = .absent } }
      effects.events.append(
        LogEvent(.warning, "no new segment could be begun", ["error": error.description]))
      if log.poison != nil { poison(error, &effects) }
      let refusal = admission.withLockInTurn { $0.phase.refusal } ?? .storage(error)
      effects.complete(batch.rolls, .failure(refusal))
    }
  }

  /// - Parameter refusal: why the batch itself was refused.
  private func close(
    _ batch: borrowing Batch, _ refusal: EngineError?, _ disk: inout DiskState?,
    _ effects: inout TurnEffects
  ) {
    var failure = refusal ?? admission.withLockInTurn { $0.closingFailure }
    if let open = disk.take() {
      if let poison = open.log.poison {
        failure = failure ?? .storage(poison)
      } else {
        do throws(StorageError) {
          try open.log.close()
          noteDurable(open.log)
        } catch {
          failure = .storage(error)
        }
      }
      open.directory.close()
    }
    shared?.engineClosed()
    // Completions that came after the batch was taken belong to refusals: the phase was closing already.
    effects.completions += admission.withLockInTurn { $0.endClosing() }
    let result: Result<LogSequenceNumber?, EngineError> =
      failure.map { .failure($0) } ?? .success(nil)
    effects.complete(batch.closes, result)
  }

  private func noteDurable(_ log: LogWriter) {
    let lsn = shared == nil ? log.durableUpTo : log.lastLSN
    admission.withLockInTurn { $0.durableLSN = lsn }
  }

  // MARK: No batch

  /// Synchronizes and appends the idle record if these are due.
  private func tend(_ disk: inout DiskState?, _ effects: inout TurnEffects) {
    guard let log = disk?.log, case .running = admission.withLockInTurn({ $0.phase }) else {
      return
    }
    do throws(StorageError) {
      if disk?.isSynchronizeDue(options) == true {
        try disk?.synchronize()
        noteDurable(log)
      }
      if options.execution == .thread, disk?.isIdleRecordDue == true {
        disk?.wantsIdleRecord = false
        try log.writeIdleRecord()
      }
    } catch {
      // An idle record without room leaves the log as it was; it only helps recovery to recognise damage.
      if log.poison != nil { poison(error, &effects) }
    }
  }
}
