import DendroStorage
import DendroTree

extension CommitPipeline {
  /// Adds a barrier to the open batch, where batches are still committed.
  ///
  /// - Parameters:
  ///   - completion: called with the refusal otherwise.
  ///   - add: may look at the head in the same moment.
  func request(_ completion: Completion, _ add: (inout Admission) -> Void) {
    let refusal = withAdmission { admission -> EngineError? in
      switch admission.phase {
      case .running: break
      case .full(let error):
        admission.wantsProbe = true
        return .diskFull(error)
      case .poisoned(let error): return error
      case .closing, .closed: return .closed
      }
      add(&admission)
      return nil
    }
    if let refusal { completion(.failure(refusal)) }
  }

  /// Has `request` called with a completion, and waits for its result on the calling thread.
  @discardableResult
  func wait(_ request: (@escaping Completion) -> Void) throws(EngineError) -> LogSequenceNumber? {
    let result = BlockingResult()
    request(result.set)
    if executor == nil { groupCommit.pump() }
    return try result.get()
  }

  /// `wait(_:)` without holding a thread.
  func waitSuspended(_ request: (@escaping Completion) -> Void) async throws(EngineError) {
    let result = await withUnsafeContinuation { continuation in
      request { continuation.resume(returning: $0) }
      if executor == nil { groupCommit.pump() }
    }
    _ = try result.get()
  }

  /// `completion` is called once every write admitted so far is durable.
  func requestSynchronize(_ completion: @escaping Completion) {
    request(completion) { $0.batch.addSynchronize(completion) }
  }

  /// Waits until every write admitted so far is durable. Not on the commit thread.
  func synchronize() throws(EngineError) { try wait(requestSynchronize) }

  /// Begins a new segment of the log; every write admitted so far is durable once this returns.
  ///
  /// - Parameter body: looks at the head behind which the segment begins; false: none is needed.
  /// - Returns: the last write before the segment.
  @discardableResult
  func roll(
    after body: (Admission) -> Bool = { _ in true }
  ) throws(EngineError) -> LogSequenceNumber? {
    try wait { completion in
      request(completion) { admission in
        if body(admission) {
          admission.batch.rolls.append(completion)
        } else {
          admission.batch.completions.append(
            .init(result: .success(nil), completion: completion))
        }
      }
    }
  }

  /// Admits `last` and then nothing any more. `completion` is called once everything before is on disk and
  /// the directory is free. At most once.
  ///
  /// A running transaction will be refused. What its block has written until now is admitted before
  /// `last`.
  func requestClose(writing last: Draft?, _ completion: @escaping Completion) {
    let now = clock.now()
    let refused = withAdmission { $0.beginClosing(writing: last, now: now, completion) }
    guard let refused else {
      if last != nil { options.unreportedFailure?(.closed, .zero) }
      return completion(.success(nil))
    }
    for (refusal, completion) in refused { report(refusal, completion) }
    stall.end()
  }

  /// Before anything was admitted: there will be no commit thread, and hence nothing may wait for it.
  func giveUp() { withAdmission { $0.phase = .closed } }

  // MARK: Following another process's writer

  /// Takes over what a reader has found in the files. All at once: the durable LSN is never ahead of what
  /// the log proves.
  func replaceHead(_ recovered: Recovery.Result) {
    let durableLSN = min(recovered.end?.durableUpTo ?? recovered.lastLSN, recovered.lastLSN)
    withAdmission { admission in
      admission.root = recovered.root
      admission.lastLSN = recovered.lastLSN
      admission.acknowledgedLSN = recovered.lastLSN
      admission.durableLSN = durableLSN
      admission.lastTime = recovered.lastTime
    }
  }
}

extension Batch {
  /// Has the batch synchronized, and `completion` called in its turn.
  mutating func addSynchronize(_ completion: @escaping Completion) {
    wantsSynchronize = true
    completions.append(.init(result: .success(nil), completion: completion))
  }
}
