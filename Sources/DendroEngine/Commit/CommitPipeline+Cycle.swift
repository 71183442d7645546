import DendroStorage
import DendroTree
import Synchronization

extension CommitPipeline {
  /// How long after the last batch an empty record says up to where the log is durable.
  private static let idleDelay = Duration.milliseconds(200)

  /// Takes what has gathered to the disk and tells everybody in it, or lets it grow for a moment more where
  /// nobody waits for it.
  ///
  /// - Returns: how long to wait for more at most; nil once closed.
  func cycle() -> BlockingExecutor.Pause? {
    let outcome = turn.withLock { turn in self.cycle(&turn) }
    for (completion, result) in outcome.told { completion(result) }
    for (error, lsn) in outcome.unreported { options.unreportedFailure?(error, lsn) }
    if !outcome.events.isEmpty || !outcome.metrics.isEmpty {
      hooks.tell(events: outcome.events, metrics: outcome.metrics)
    }
    if durableSignal.hasWaiters {
      durableSignal.advance(to: admission.withLock { $0.durable })
    }
    if let bytes = outcome.logBytesSinceCheckpoint {
      checkpointer.withLock { $0 }?.call(bytes)
    }
    return outcome.pause
  }

  /// Cycles until there is nothing left to do: what stands in for the thread under inline execution.
  func pump() {
    repeat { _ = cycle() } while admission.withLock { !$0.batch.isEmpty }
  }

  /// What a cycle leaves to be done without any lock.
  private struct Outcome {
    var told: [(Completion, Result<LogSequenceNumber?, EngineError>)] = []
    var unreported: [(EngineError, LogSequenceNumber)] = []
    var events: [LogEvent] = []
    var metrics: [Metric] = []
    var logBytesSinceCheckpoint: UInt64?
    var pause: BlockingExecutor.Pause? = BlockingExecutor.Pause.none
  }

  private func cycle(_ turn: inout Turn) -> Outcome {
    var outcome = Outcome()
    var batch = Batch()
    swap(&batch, &turn.spare)
    let mayGather = executor != nil && turn.gatheringSince == nil
    let (next, wantsProbe) = admission.withLock { state -> (ThreadState, Bool) in
      let wantsProbe = state.wantsProbe
      state.wantsProbe = false
      state.thread = .busy
      if !wantsProbe {
        if state.batch.isEmpty {
          state.thread = .idle
        } else if mayGather, mayGrow(state.batch) {
          state.thread = .gathering
        }
      }
      if case .busy = state.thread {
        swap(&batch, &state.batch)
        state.inFlight = InFlight(writes: batch.writes, changes: batch.changes)
      }
      return (state.thread, wantsProbe)
    }
    if case .gathering = next {
      outcome.pause = .atMost(turn.beginGathering(options))
      swap(&batch, &turn.spare)
      return outcome
    }
    backlog.open()
    if wantsProbe { probe(&turn, &outcome) }
    if case .busy = next {
      write(batch, &turn, &outcome)
    } else {
      rest(&turn, &outcome)
    }
    turn.endGathering()
    batch.removeAll()
    swap(&batch, &turn.spare)
    return outcome
  }

  // MARK: The steps

  private func write(_ batch: borrowing Batch, _ turn: inout Turn, _ outcome: inout Outcome) {
    do throws(StorageError) {
      if !batch.records.isEmpty, turn.store != nil {
        try turn.store!.append(batch)
        turn.didAppend()
      }
    } catch {
      let refusal = refuse(batch, error, isAppend: true, &turn, &outcome)
      return close(batch, refusal, &turn, &outcome)
    }
    do throws(StorageError) {
      if batch.wantsSynchronize || turn.isSynchronizeDue(options) { try turn.synchronize() }
    } catch {
      let refusal = refuse(batch, error, isAppend: false, &turn, &outcome)
      return close(batch, refusal, &turn, &outcome)
    }
    acknowledge(batch, &turn, &outcome)
    roll(batch, &turn, &outcome)
    close(batch, nil, &turn, &outcome)
  }

  private func acknowledge(_ batch: borrowing Batch, _ turn: inout Turn, _ outcome: inout Outcome) {
    for waiting in batch.waiting { outcome.told.append((waiting.completion, waiting.result)) }
    let lastLSN = batch.lastLSN
    let recordCount = batch.records.count
    let durable = turn.store?.log.durableUpTo
    let writeCount = batch.writes.count + batch.countInMemory
    let logBytes = turn.store?.logBytesSinceCheckpoint
    let logByteCount = turn.store?.log.storedByteCount ?? 0
    let synchronizeCount = turn.synchronizeCount
    admission.withLock { state in
      state.inFlight = InFlight()
      if let lastLSN { state.acknowledged = lastLSN }
      state.durable = durable ?? state.acknowledged
      state.statistics.batchCount += 1
      state.statistics.recordCount += UInt64(recordCount)
      state.statistics.logByteCount = logByteCount
      state.statistics.logBytesSinceCheckpoint = logBytes ?? 0
      state.statistics.synchronizeCount = synchronizeCount
    }
    outcome.logBytesSinceCheckpoint = logBytes
    if hooks.wantsMetrics {
      outcome.metrics.append(Metric("dendro.commit.batches", .counter, 1))
      outcome.metrics.append(Metric("dendro.commit.writes", .counter, Double(writeCount)))
      outcome.metrics.append(Metric("dendro.log.bytes", .gauge, Double(logByteCount)))
    }
  }

  private func roll(_ batch: borrowing Batch, _ turn: inout Turn, _ outcome: inout Outcome) {
    guard turn.store != nil else {
      for completion in batch.rolls { outcome.told.append((completion, .success(nil))) }
      return
    }
    guard !batch.rolls.isEmpty || turn.store!.log.wantsRoll else { return }
    var result: Result<LogSequenceNumber?, EngineError> = .success(nil)
    do throws(StorageError) {
      try turn.store!.roll(time: admission.withLock { $0.lastTime })
      turn.didSynchronize()
      let durable = turn.store!.log.durableUpTo
      admission.withLock { $0.durable = durable }
    } catch {
      outcome.events.append(
        LogEvent(.warning, "no new segment could be begun", ["error": error.description]))
      if turn.store!.log.poison != nil { poison(error, &outcome) }
      result = .failure(admission.withLock { $0.phase.refusal } ?? .storage(error))
    }
    for completion in batch.rolls { outcome.told.append((completion, result)) }
  }

  /// - Parameter refusal: why the batch itself was refused.
  private func close(
    _ batch: borrowing Batch, _ refusal: EngineError?, _ turn: inout Turn,
    _ outcome: inout Outcome
  ) {
    guard !batch.closes.isEmpty else { return }
    var result: Result<LogSequenceNumber?, EngineError> = .success(nil)
    // Whoever closes is told of what the disk refused, even if it was long ago.
    if let refusal = refusal ?? admission.withLock({ $0.poison }) {
      result = .failure(refusal)
    }
    if let store = turn.store {
      if let poison = store.log.poison {
        if case .success = result {
          result = .failure(.storage(poison))
        }
      } else {
        do throws(StorageError) {
          try store.log.close()
          let durable = store.log.durableUpTo
          admission.withLock { $0.durable = durable }
        } catch {
          result = .failure(.storage(error))
        }
      }
      store.directory.close()
    }
    turn.store = nil
    // What came in after the last batch was taken found the phase closing and was refused in its turn.
    let late = admission.withLock { state -> [Batch.Waiting] in
      state.phase = .closed
      state.observer = nil
      let late = state.batch.waiting
      state.batch.removeAll()
      return late
    }
    for waiting in late {
      outcome.told.append((waiting.completion, .failure(.closed)))
    }
    for completion in batch.closes { outcome.told.append((completion, result)) }
    outcome.pause = nil
  }

  /// Nothing has gathered: a due synchronize, the mark of idleness, and how long to sleep.
  private func rest(_ turn: inout Turn, _ outcome: inout Outcome) {
    outcome.pause = .untilWoken
    guard turn.store != nil, case .running = admission.withLock({ $0.phase }) else { return }
    do throws(StorageError) {
      if let pause = turn.untilSynchronize(options) {
        guard pause <= .zero else {
          outcome.pause = .atMost(pause)
          return
        }
        try turn.synchronize()
        let durable = turn.store!.log.durableUpTo
        admission.withLock { $0.durable = durable }
      }
    } catch {
      poison(error, &outcome)
      return
    }
    guard executor != nil, turn.wantsMark else { return }
    if turn.sinceAppend >= Self.idleDelay {
      turn.wantsMark = false
      // The mark is a courtesy to recovery: that the disk has no room for it is no failure.
      do throws(StorageError) {
        try turn.store!.log.mark()
      } catch {
        if turn.store!.log.poison != nil { poison(error, &outcome) }
      }
    } else {
      outcome.pause = .atMost(Self.idleDelay)
    }
  }

  // MARK: When the disk refuses

  /// - Returns: what everybody is told.
  private func refuse(
    _ batch: borrowing Batch, _ error: StorageError, isAppend: Bool, _ turn: inout Turn,
    _ outcome: inout Outcome
  ) -> EngineError {
    let log = turn.store!.log
    var isFull = false
    if isAppend {
      // Cut back to the last good record; then a full disk is only a pause.
      do throws(StorageError) {
        try log.cutBack()
        isFull = error.isOutOfSpace
      } catch {
        outcome.events.append(
          LogEvent(.error, "the log could not be cut back", ["error": error.description]))
      }
    }
    if !isFull {
      log.abandon(error, dropsUnsynchronized: options.durability == .everyCommit)
    }
    let durable = log.durableUpTo
    let refusal = admission.withLock { state -> EngineError in
      let refusal: EngineError
      if isFull {
        refusal = .diskFull(error)
        if case .running = state.phase { state.phase = .full(error) }
      } else {
        let isDoubtful = state.acknowledged > durable
        let doubt = isDoubtful ? durable.next...state.acknowledged : nil
        refusal = .poisoned(cause: error, notKnownDurable: doubt)
        switch state.phase {
        case .running, .full: state.phase = .poisoned(refusal)
        case .poisoned, .closing, .closed: break
        }
      }
      // What is taken back here may have been admitted before the close that waits behind it.
      if case .closing = state.phase, state.poison == nil {
        state.poison = refusal
      }
      undo(&state, refusal, &outcome)
      return refusal
    }
    for waiting in batch.waiting {
      outcome.told.append((waiting.completion, waiting.failure(refusal)))
    }
    for completion in batch.rolls { outcome.told.append((completion, .failure(refusal))) }
    tellOpenBatch(refusal, &outcome)
    outcome.events.append(
      LogEvent(
        isFull ? .warning : .error, "the disk refused a batch",
        ["error": error.description, "writes": String(batch.writes.count)]))
    return refusal
  }

  /// A synchronize or a roll failed outside a batch: only what has gathered since is taken back.
  private func poison(_ error: StorageError, _ outcome: inout Outcome) {
    let refusal = admission.withLock { state -> EngineError in
      let isDoubtful = state.acknowledged > state.durable
      let doubt = isDoubtful ? state.durable.next...state.acknowledged : nil
      let refusal = EngineError.poisoned(cause: error, notKnownDurable: doubt)
      switch state.phase {
      case .running, .full: state.phase = .poisoned(refusal)
      case .poisoned, .closing, .closed: break
      }
      undo(&state, refusal, &outcome)
      return refusal
    }
    tellOpenBatch(refusal, &outcome)
    outcome.events.append(
      LogEvent(.error, "the disk refused a synchronize", ["error": error.description]))
  }

  /// Takes back every write that was not acknowledged, newest first.
  private func undo(_ state: inout Admission, _ refusal: EngineError, _ outcome: inout Outcome) {
    let writes = state.inFlight.writes + state.batch.writes
    var replaced = state.inFlight.changes + state.batch.changes
    for write in writes.reversed() {
      var changes: [Change] = []
      for change in replaced.suffix(Int(write.changeCount)).reversed() {
        let current = state.root.node(at: change.path)
        state.root.graft(change.replaced, at: change.path)
        changes.append(Change(path: change.path, replaced: current, new: change.replaced))
      }
      replaced.removeLast(Int(write.changeCount))
      let commit = Commit(
        lsn: write.lsn, time: state.lastTime, changes: changes[...], isUndo: true)
      state.observer?.committed(commit, root: state.root)
    }
    for write in writes where !write.isReported {
      outcome.unreported.append((refusal, write.lsn))
    }
    state.inFlight = InFlight()
    state.batch.forgetWrites()
    state.lastLSN = state.acknowledged
  }

  private func tellOpenBatch(_ refusal: EngineError, _ outcome: inout Outcome) {
    let (waiting, rolls) = admission.withLock { state in
      let told = (state.batch.waiting, state.batch.rolls)
      state.batch.waiting = []
      state.batch.rolls = []
      return told
    }
    for one in waiting { outcome.told.append((one.completion, one.failure(refusal))) }
    for completion in rolls { outcome.told.append((completion, .failure(refusal))) }
  }

  /// After a full disk: whether a record may be appended again.
  private func probe(_ turn: inout Turn, _ outcome: inout Outcome) {
    guard let store = turn.store, case .full = admission.withLock({ $0.phase }) else { return }
    do throws(StorageError) {
      guard try store.log.probe() else { return }
    } catch {
      // Room would not help any more.
      if store.log.poison != nil { poison(error, &outcome) }
      return
    }
    admission.withLock { state in
      if case .full = state.phase { state.phase = .running }
    }
  }
}
