import DendroStorage
import DendroTree
import Synchronization

extension GroupCommit {
  /// Has the shared log take a batch.
  ///
  /// - Returns: how long that took, nil if the log takes nothing of it; and why the batch is taken back, nil if it stands.
  func share(_ batch: borrowing Batch) -> (time: Duration?, refusal: EngineError?) {
    guard let shared else { return (nil, nil) }
    if let reason = batch.withholds { return (nil, reason) }
    let spans = batch.encoder.records
    if spans.isEmpty { return (nil, nil) }
    let started = ContinuousClock.now
    return batch.encoder.payload.withBytes { payload in
      let records = spans.map { span in
        SharedRecord(
          firstLSN: span.firstLSN, count: span.count, baseTime: span.baseTime,
          payload: UnsafeRawBufferPointer(rebasing: payload[span.start..<span.end]))
      }
      do throws(SharedLogFailure) {
        try shared.append(records)
        return (ContinuousClock.now - started, nil)
      } catch {
        return (nil, error.asError)
      }
    }
  }

  /// Takes back a batch that the shared log does not have, and the open one. Writes are refused until the engine leads
  /// again.
  func withhold(
    _ batch: inout Batch, _ refusal: EngineError, _ effects: inout TurnEffects
  ) -> EngineError {
    admission.withLockInTurn { admission in
      switch admission.phase {
      case .running, .full, .withheld: admission.phase = .withheld(refusal)
      case .closing: admission.closingFailure = admission.closingFailure ?? refusal
      case .poisoned, .closed: break
      }
    }
    let writeCount = batch.writeCount
    effects.completions += batch.takeCompletions(failing: refusal)
    undoAll(refusal, &effects)
    if writeCount > 0 {
      effects.events.append(
        LogEvent(
          .warning, "the shared log did not take writes: they are taken back",
          ["error": refusal.description, "writes": String(writeCount)]))
    }
    return refusal
  }

  /// Acknowledges a batch that the shared log has and that the copy in the directory could not take. Nothing more is
  /// written.
  func keep(
    _ batch: inout Batch, withoutCopy error: StorageError, _ disk: DiskState?,
    _ effects: inout TurnEffects
  ) {
    disk?.log.abandon(error, unacknowledgedFrom: nil)
    acknowledge(&batch, nil, disk, &effects)
    poison(error, &effects)
  }

  // MARK: What other engines have appended

  func take(_ records: [SharedRecord]) throws(EngineError) {
    let failure = withSharedDisk { (disk, effects) -> EngineError? in
      guard let log = disk?.log else { return .closed }
      if let refusal = admission.withLockInTurn({ $0.refusalToTake }) { return refusal }
      do throws(StorageError) {
        for record in records { try Self.check(record, in: log.segmentName.fileName) }
      } catch {
        return .storage(error)
      }
      do throws(StorageError) {
        try disk?.append(records)
      } catch {
        log.abandon(error, unacknowledgedFrom: nil)
        poison(error, &effects)
        return .storage(error)
      }
      for record in records { show(record, &effects) }
      let growth = disk?.logBytesSinceCheckpoint ?? 0
      if let handler = disk?.logGrowthHandler, growth >= options.checkpointByteMin {
        effects.logGrowth = (handler, growth)
      }
      if log.wantsRoll {
        do throws(StorageError) {
          try disk?.roll(time: admission.withLockInTurn { $0.lastTime }, addsSecondRoot: false)
        } catch {
          effects.events.append(
            LogEvent(.warning, "no new segment could be begun", ["error": error.description]))
          if log.poison != nil { poison(error, &effects) }
        }
      }
      return nil
    }
    if let failure { throw failure }
  }

  /// Reads all writes of a record once, so that nothing of it is taken if one is damaged.
  private static func check(_ record: SharedRecord, in path: String) throws(StorageError) {
    var reader = LogV1Reader()
    reader.restart(record.payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    do throws(CodingError) {
      for _ in 0..<record.count { _ = try reader.next() }
      guard reader.isAtEnd else {
        throw CodingError(expected: "the end of the record's writes", found: "more bytes")
      }
    } catch {
      throw .corrupt(
        path: path, offset: 0, expected: "\(error.expected) behind write \(reader.lsn)",
        found: error.found)
    }
  }

  /// Shows the writes of a record that was checked, one after the other.
  private func show(_ record: SharedRecord, _ effects: inout TurnEffects) {
    var reader = LogV1Reader()
    reader.restart(record.payload, firstLSN: record.firstLSN, baseTime: record.baseTime)
    for _ in 0..<record.count {
      guard let write = try? reader.next() else { preconditionFailure("the record was checked") }
      let (lsn, time, change) = (reader.lsn, reader.time, reader.system)
      admission.withLockInTurn { admission in
        admission.follow(write, system: change, lsn, time)
        admission.durableLSN = lsn
      }
      let completion = reader.origin.flatMap { origin in
        shared?.completion(of: origin) { admission.withLockInTurn { $0.root } }
      }
      if let completion {
        effects.completions.append(.init(result: .success(lsn), completion: completion))
      }
    }
  }

  /// - Parameter waits: whether it waits for the end of a turn.
  func beginLeading(
    if leads: () -> Bool, waits: Bool = true,
    with first: () -> [(write: EncodedWrite, completion: Completion)], now: Int64
  ) -> Bool {
    var refused: [Batch.PendingCompletion] = []
    // A turn that takes writes back is at its end then.
    func begin(_ isOpen: Bool) -> Bool {
      guard isOpen, leads() else { return false }
      return admission.withLock { admission in
        guard case .withheld = admission.phase else { return false }
        admission.phase = .running
        for (write, completion) in first() {
          let refusal = write.withView { admission.admit($0, now: now, completion: completion) }
          if let refusal {
            refused.append(.init(result: .failure(refusal), completion: completion))
          }
        }
        return true
      }
    }
    let begins =
      waits
      ? disk.withLock { begin($0 != nil) }
      : disk.withLockIfAvailable { begin($0 != nil) } ?? false
    for pending in refused { pending.completion(pending.result) }
    return begins
  }
}

extension Admission {
  /// Why records of the shared log cannot be taken; nil if they can.
  fileprivate var refusalToTake: EngineError? {
    switch phase {
    case .withheld: nil
    case .running: preconditionFailure("an engine that leads takes no records")
    case .full(let error): .diskFull(error)
    case .poisoned(let error): error
    case .closing, .closed: .closed
    }
  }
}
