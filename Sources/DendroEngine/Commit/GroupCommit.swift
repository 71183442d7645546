import DendroStorage
import DendroTree
import Synchronization

/// Writes the open batch to the disk, one cycle after the other: on the commit thread, or on that of a caller
/// who waits for it, while no other thread does (`lead`). Under inline execution on the caller's alone.
///
/// One thread at a time has the turn, from the beginning of a cycle to its last completion, so that completions
/// keep their order. Inline execution has no turn. Within the turn a cycle holds the lock of the disk's state, and
/// takes the admission lock for moments. Writers only ever take the admission lock.
final class GroupCommit: Sendable {
  let admission: AdmissionLock
  let options: EngineOptions
  /// Held by the thread that runs a cycle.
  private let turn = Mutex(())
  /// The thread that has the turn; 0 where none has.
  let committer = Atomic<UInt>(0)
  /// A cycle holds the lock while it works on the disk, a checkpoint for a moment.
  let disk: Mutex<DiskState>
  /// Wakes tasks that wait for more durable writes.
  let durableSignal = DurableSignal()
  private let stall: WriteStall
  private let instrumentation: Instrumentation
  /// Whether a thread runs the cycles; otherwise `pump()` does.
  private let hasThread: Bool

  init(
    admission: AdmissionLock, stall: WriteStall, disk: consuming sending DiskState,
    hasThread: Bool, instrumentation: Instrumentation, options: EngineOptions
  ) {
    self.admission = admission
    self.stall = stall
    self.disk = Mutex(disk)
    self.hasThread = hasThread
    self.instrumentation = instrumentation
    self.options = options
  }

  // MARK: The turn

  /// Runs one cycle on the commit thread.
  ///
  /// - Parameter isWoken: whether there is work. If not, and a caller leads a cycle, the thread sleeps again: the
  ///   caller wakes it if that leaves anything to do.
  /// - Returns: how long the thread sleeps before the next cycle, if it is not woken; nil once closed.
  func cycle(isWoken: Bool) -> BlockingExecutor.Pause? {
    if isWoken { return turn.withLock { _ in takeTurn(leads: false) } }
    return turn.withLockIfAvailable { _ in takeTurn(leads: false) } ?? .atMost(.milliseconds(1))
  }

  /// Runs one cycle on the calling thread, unless another thread runs one. Saves a caller who waits for the
  /// batch the way to the commit thread and back.
  ///
  /// - Returns: whether the commit thread has to be woken; nil where another thread has the turn, and the commit
  ///   thread has to be asked for another cycle.
  func lead() -> Bool? {
    // To try a mutex that is held costs a call of the system.
    if committer.load(ordering: .relaxed) != 0 { return nil }
    return turn.withLockIfAvailable { _ in
      // Once closed, the thread has to see that it may end.
      guard let pause = takeTurn(leads: true) else { return true }
      return disk.withLock { $0.wakesThread(for: pause) }
    }
  }

  /// Runs cycles until the open batch is empty: replaces the thread under inline execution.
  func pump() {
    repeat { _ = commit(leads: true) } while admission.withLockInCycle { !$0.batch.isEmpty }
  }

  /// Whether the caller has the turn: a completion that writes cannot wait for the disk then.
  var isCommitting: Bool {
    committer.load(ordering: .relaxed) == BlockingExecutor.currentThreadID
  }

  private func takeTurn(leads: Bool) -> BlockingExecutor.Pause? {
    committer.store(BlockingExecutor.currentThreadID, ordering: .relaxed)
    defer { committer.store(0, ordering: .relaxed) }
    return commit(leads: leads)
  }

  /// Commits the open batch and calls its completions, or lets it grow where no caller waits for it.
  ///
  /// - Parameter leads: whether the calling thread is not the commit thread.
  /// - Returns: how long the commit thread sleeps before the next cycle, if it is not woken; nil once closed.
  private func commit(leads: Bool) -> BlockingExecutor.Pause? {
    let effects = disk.withLock { disk in cycle(&disk, leads: leads) }
    for pending in effects.acknowledged { pending.completion(pending.result) }
    for (completion, result) in effects.completions { completion(result) }
    for (error, lsn) in effects.unreported { options.unreportedFailure?(error, lsn) }
    if !effects.events.isEmpty || !effects.metrics.isEmpty {
      instrumentation.record(events: effects.events, metrics: effects.metrics)
    }
    if durableSignal.hasWaiters {
      durableSignal.advance(to: admission.withLockInCycle { $0.durableLSN })
    }
    if let (handler, byteCount) = effects.logGrowth { handler(byteCount) }
    return effects.pause
  }

  private func cycle(_ disk: inout DiskState, leads: Bool) -> CycleEffects {
    var effects = CycleEffects()
    if disk.isClosed {
      effects.pause = nil
      return effects
    }
    disk.beginCycle(isLed: hasThread && leads)
    let looksAgain = disk.looksAgain(options)
    var batch = Batch()
    swap(&batch, &disk.spare)
    let mayDelay = hasThread && !leads && disk.delayedSince == nil
    let gathered = hasThread && !leads ? disk.gatheredCount : 0
    let start = admission.withLockInCycle {
      $0.beginCycle(taking: &batch, mayDelay: mayDelay, gathered: gathered, looksAgain: looksAgain)
    }
    switch start {
    case .delay:
      effects.pause = .atMost(disk.beginDelay(options))
    case .gather:
      effects.pause = .atMost(disk.beginGathering())
    case .idle:
      stall.end()
      disk.endDelay()
      rest(&disk, &effects)
    case .commit(let probes):
      if probes { probe(&disk, &effects) }
      stall.end()
      commit(&batch, &disk, &effects)
      disk.endDelay()
      batch.removeAll()
    }
    swap(&batch, &disk.spare)
    disk.endCycle()
    if disk.delayedSince == nil, disk.looksAgain(options) {
      // The next write without a completion wakes no thread: its delay begins here.
      effects.pause = effects.pause?.limited(to: disk.beginDelay(options))
    }
    if !leads { disk.noteThread(effects.pause) }
    return effects
  }

  // MARK: One batch

  private func commit(
    _ batch: inout Batch, _ disk: inout DiskState, _ effects: inout CycleEffects
  ) {
    var refusal: EngineError?
    do throws(StorageError) {
      try disk.append(batch)
    } catch {
      refusal = refuse(batch, error, isAppend: true, &disk, &effects)
    }
    if refusal == nil {
      do throws(StorageError) {
        let start = instrumentation.wantsMetrics ? ContinuousClock.now : nil
        let count = disk.synchronizeCount
        if batch.wantsSynchronize || disk.isSynchronizeDue(options) { try disk.synchronize() }
        if let start, disk.synchronizeCount > count {
          let seconds = (ContinuousClock.now - start).inSeconds
          effects.metrics = [Metric("dendro.synchronize.seconds", .timer, seconds)]
        }
      } catch {
        refusal = refuse(batch, error, isAppend: false, &disk, &effects)
      }
    }
    if refusal == nil {
      acknowledge(&batch, &disk, &effects)
      roll(batch, &disk, &effects)
    }
    if !batch.closes.isEmpty { close(batch, refusal, &disk, &effects) }
  }

  private func acknowledge(
    _ batch: inout Batch, _ disk: inout DiskState, _ effects: inout CycleEffects
  ) {
    let callerCount = batch.callerCount
    swap(&effects.acknowledged, &batch.completions)
    let lastLSN = batch.lastLSN
    let recordCount = batch.encoder.records.count
    let log = disk.store?.log
    let durableLSN = log?.durableUpTo
    let logByteCount = log?.storedByteCount ?? 0
    let logBytesSinceCheckpoint = disk.store?.logBytesSinceCheckpoint ?? 0
    let synchronizeCount = disk.synchronizeCount
    // A roll or a close still follows otherwise.
    let mayEnd = batch.rolls.isEmpty && batch.closes.isEmpty && !(log?.wantsRoll ?? false)
    let looksAgain = disk.looksAgain(options)
    let (hasEnded, waitingCount) = admission.withLockInCycle { admission in
      admission.acknowledge(lastLSN, durableLSN: durableLSN)
      admission.statistics.batchCount += 1
      admission.statistics.recordCount += UInt64(recordCount)
      admission.statistics.logByteCount = logByteCount
      admission.statistics.logBytesSinceCheckpoint = logBytesSinceCheckpoint
      admission.statistics.synchronizeCount = synchronizeCount
      return (
        mayEnd && admission.endCycle(looksAgain: looksAgain), admission.batch.callerCount
      )
    }
    disk.noteCallers(callerCount + waitingCount)
    if hasEnded, hasThread { effects.pause = disk.pause(options) }
    if let handler = disk.logGrowthHandler, logBytesSinceCheckpoint >= options.checkpointByteMin {
      effects.logGrowth = (handler, logBytesSinceCheckpoint)
    }
    if instrumentation.wantsMetrics {
      let writeCount = batch.writeCount + batch.countInMemory
      effects.metrics += [
        Metric("dendro.commit.batches", .counter, 1),
        Metric("dendro.commit.writes", .counter, Double(writeCount)),
        Metric("dendro.log.bytes", .gauge, Double(logByteCount)),
      ]
    }
  }

  private func roll(
    _ batch: borrowing Batch, _ disk: inout DiskState, _ effects: inout CycleEffects
  ) {
    guard let log = disk.store?.log else {
      for completion in batch.rolls { effects.completions.append((completion, .success(nil))) }
      return
    }
    guard !batch.rolls.isEmpty || log.wantsRoll else { return }
    var result: Result<LogSequenceNumber?, EngineError>
    do throws(StorageError) {
      try disk.roll(time: admission.withLockInCycle { $0.lastTime })
      let durableLSN = log.durableUpTo
      admission.withLockInCycle { $0.durableLSN = durableLSN }
      result = .success(log.lastLSN)
    } catch {
      effects.events.append(
        LogEvent(.warning, "no new segment could be begun", ["error": error.description]))
      if log.poison != nil { poison(error, &effects) }
      result = .failure(admission.withLockInCycle { $0.phase.refusal } ?? .storage(error))
    }
    for completion in batch.rolls { effects.completions.append((completion, result)) }
  }

  /// - Parameter refusal: why the batch itself was refused.
  private func close(
    _ batch: borrowing Batch, _ refusal: EngineError?, _ disk: inout DiskState,
    _ effects: inout CycleEffects
  ) {
    var failure = refusal ?? admission.withLockInCycle { $0.closingFailure }
    if let store = disk.store {
      if let poison = store.log.poison {
        failure = failure ?? .storage(poison)
      } else {
        do throws(StorageError) {
          try store.log.close()
          let durableLSN = store.log.durableUpTo
          admission.withLockInCycle { $0.durableLSN = durableLSN }
        } catch {
          failure = .storage(error)
        }
      }
      store.directory.close()
    }
    disk.close()
    // Completions that came after the batch was taken belong to refusals: the phase was closing already.
    effects.fail(admission.withLockInCycle { $0.endClosing() }, .closed)
    let result: Result<LogSequenceNumber?, EngineError> =
      failure.map { .failure($0) } ?? .success(nil)
    for completion in batch.closes { effects.completions.append((completion, result)) }
    effects.pause = nil
  }

  // MARK: No batch

  /// A cycle without a batch: synchronizes and appends the idle record where these are due.
  private func rest(_ disk: inout DiskState, _ effects: inout CycleEffects) {
    effects.pause = .untilWoken
    guard let log = disk.store?.log,
      case .running = admission.withLockInCycle({ $0.phase })
    else { return }
    do throws(StorageError) {
      if let duration = disk.untilSynchronize(options), duration <= .zero {
        try disk.synchronize()
        let durableLSN = log.durableUpTo
        admission.withLockInCycle { $0.durableLSN = durableLSN }
      }
      if hasThread, disk.isIdleRecordDue {
        disk.wantsIdleRecord = false
        try log.writeIdleRecord()
      }
    } catch {
      // An idle record without room leaves the log as it was; it only helps recovery to recognise damage.
      if log.poison != nil { return poison(error, &effects) }
    }
    if hasThread { effects.pause = disk.pause(options) }
  }
}
