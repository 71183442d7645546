import DendroStorage
import DendroTree

/// What a turn does when the disk refuses an append, a synchronize or a new segment.
extension GroupCommit {
  /// Undoes the writes of the batch and of the open one.
  ///
  /// A full disk is only a pause where the log can be cut back to the last good record. Everything else
  /// poisons the engine.
  ///
  /// - Returns: the error that the completions get.
  func refuse(
    _ batch: borrowing Batch, _ error: StorageError, isAppend: Bool, _ disk: inout DiskState,
    _ effects: inout TurnEffects
  ) -> EngineError {
    let log = disk.store!.log
    var isFull = false
    if isAppend {
      do throws(StorageError) {
        try log.cutBack()
        isFull = error.isOutOfSpace
      } catch {
        effects.events.append(
          LogEvent(.error, "the log could not be cut back", ["error": error.description]))
      }
    }
    if !isFull {
      log.abandon(error, dropsUnsynchronized: options.durability == .everyCommit)
    }
    let durableLSN = log.durableUpTo
    let (refusal, unreported) = admission.withLockInTurn { admission in
      admission.durableLSN = durableLSN
      let refusal = admission.refuse(error, isFull: isFull)
      // The undone writes may have been admitted before a close, which then reports their failure.
      if case .closing = admission.phase, admission.closingFailure == nil {
        admission.closingFailure = refusal
      }
      return (refusal, admission.undo())
    }
    effects.fail(batch.completions, refusal)
    effects.fail(batch.rolls, refusal)
    failOpenBatch(refusal, unreported, &effects)
    effects.events.append(
      LogEvent(
        isFull ? .warning : .error, "the disk refused a batch",
        ["error": error.description, "writes": String(batch.writeCount)]))
    return refusal
  }

  /// Poisons the engine after a failed synchronize or roll outside of a batch, and undoes the writes of the
  /// open batch.
  func poison(_ error: StorageError, _ effects: inout TurnEffects) {
    let (refusal, unreported) = admission.withLockInTurn { admission in
      (admission.refuse(error, isFull: false), admission.undo())
    }
    failOpenBatch(refusal, unreported, &effects)
    effects.events.append(
      LogEvent(.error, "the disk refused a synchronize", ["error": error.description]))
  }

  private func failOpenBatch(
    _ refusal: EngineError, _ unreported: [LogSequenceNumber], _ effects: inout TurnEffects
  ) {
    effects.unreported += unreported.map { (refusal, $0) }
    let (completions, rolls) = admission.withLockInTurn { $0.batch.takeCompletions() }
    effects.fail(completions, refusal)
    effects.fail(rolls, refusal)
    // The open batch has room again, or no writer is to wait for any.
    stall.end()
  }

  /// Looks for room for a record on a disk that was full.
  func probe(_ disk: inout DiskState, _ effects: inout TurnEffects) {
    var hasRoom = false
    if let log = disk.store?.log, case .full = admission.withLockInTurn({ $0.phase }) {
      do throws(StorageError) {
        hasRoom = try log.probe()
      } catch {
        // A poisoned log stays so, however much room there is.
        if log.poison != nil { poison(error, &effects) }
      }
    }
    admission.withLockInTurn { $0.endProbe(foundRoom: hasRoom) }
  }
}

extension Admission {
  /// Changes the phase after the disk refused.
  ///
  /// - Returns: why writes are refused from now on.
  fileprivate mutating func refuse(_ error: StorageError, isFull: Bool) -> EngineError {
    if isFull {
      if case .running = phase { phase = .full(error) }
      return .diskFull(error)
    }
    let doubtful = acknowledgedLSN > durableLSN ? durableLSN.next...acknowledgedLSN : nil
    let refusal = EngineError.poisoned(cause: error, notKnownDurable: doubtful)
    switch phase {
    case .running, .full: phase = .poisoned(refusal)
    case .poisoned, .closing, .closed: break
    }
    return refusal
  }
}
