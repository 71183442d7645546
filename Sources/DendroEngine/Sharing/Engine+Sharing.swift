package import DendroStorage
package import DendroTree

// What the owner of an engine with a shared log calls, on one thread. Until `beginLeading()` the engine refuses writes.

extension Engine {
  /// Copies records that another engine has appended to the shared log to the log of the directory, and shows their
  /// writes.
  ///
  /// - Parameter records: those behind the last write, in their order, while this engine does not lead.
  /// - Throws: `.storage` if the disk refuses, after which the engine takes nothing more until it is opened again; or if a
  ///   record is damaged, which nothing was taken of then. `.closed`.
  package func take(_ records: [SharedRecord]) throws(EngineError) {
    if isForked { throw .forked }
    try pipeline.groupCommit.take(records)
  }

  /// Takes writes from now on. All records of the shared log were taken.
  ///
  /// - Parameter first: returns the writes that come before any other; called under the admission lock.
  /// - Returns: false if the engine refuses writes for another reason, or is closed: `first` was not called then.
  package func beginLeading(
    with first: () -> [(write: EncodedWrite, completion: Completion)] = { [] }
  ) -> Bool {
    pipeline.groupCommit.beginLeading(if: { true }, with: first, now: pipeline.clock.now())
  }

  /// Refuses new writes for a reason, which replaces the one before. Those that were admitted go on to wait for the shared
  /// log.
  ///
  /// - Returns: false if writes are refused for another reason.
  @discardableResult
  package func pauseLeading(_ reason: String) -> Bool {
    let isPaused = pipeline.withAdmission { admission in
      switch admission.phase {
      case .running, .withheld: admission.phase = .withheld(.unavailable(reason))
      case .full, .poisoned, .closing, .closed: return false
      }
      return true
    }
    // Writers that wait for room in the open batch are refused as well.
    pipeline.stall.end()
    return isPaused
  }

  /// Takes writes again after `pauseLeading(_:)`.
  ///
  /// - Parameter leads: whether the shared log has refused no batch since; asked while none is being appended.
  /// - Returns: false if a batch is being appended, for which this does not wait, or writes are refused for another reason.
  package func resumeLeading(if leads: () -> Bool) -> Bool {
    pipeline.groupCommit.beginLeading(
      if: leads, waits: false, with: { [] }, now: pipeline.clock.now())
  }

  /// Refuses writes for a reason, and takes back those that the shared log has not taken: it takes none any more.
  /// Returns once all is taken back.
  package func endLeading(_ reason: String) throws(EngineError) {
    do throws(EngineError) {
      try wait { completion in
        pipeline.request(completion) { admission in
          admission.batch.withholds = .unavailable(reason)
          admission.batch.completions.append(.init(result: .success(nil), completion: completion))
        }
      }
    } catch {
      // With the batch, the call itself is taken back.
      if case .unavailable = error { return }
      throw error
    }
  }

  /// Why the copy of the shared log in the directory cannot be written any more; nil if it can.
  package var copyFailure: EngineError? {
    pipeline.withAdmission { if case .poisoned(let error) = $0.phase { error } else { nil } }
  }

  /// The log that it shares; nil if it decides alone which batches stand.
  package var sharedLog: (any SharedLog)? { pipeline.groupCommit.shared }

  /// The last write that was admitted, whether the shared log has it or not.
  package var admittedLSN: LogSequenceNumber { pipeline.withAdmission { $0.lastLSN } }

  /// Whether writes are admitted.
  package var isLeading: Bool {
    pipeline.withAdmission { if case .running = $0.phase { true } else { false } }
  }
}

extension CommitPipeline {
  /// Whether an engine that shares its log takes writes.
  var leadsAgain: Bool {
    groupCommit.shared != nil
      && withAdmission { if case .running = $0.phase { true } else { false } }
  }

  /// Passes a write on to the engine that leads.
  ///
  /// - Returns: false if it is refused.
  func forward(
    _ write: EncodedWrite, _ refusal: EngineError, _ completion: Completion?,
    _ waits: borrowing PermittedWaits
  ) -> Bool {
    // The engine that leads does not know what a judge of this one would say.
    guard case .unavailable = refusal, waits.judging == nil, let shared = groupCommit.shared else {
      return false
    }
    return shared.forward(write) { [self] result in
      if let completion {
        completion(result)
      } else if case .failure(let error) = result {
        report(error, nil)
      }
    }
  }
}
