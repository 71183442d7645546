import DendroStorage
import DendroTree

extension CommitPipeline {
  /// Adds a barrier (a synchronize or a roll) to the open batch, behind all admitted writes.
  ///
  /// - Parameters:
  ///   - completion: called with the refusal if no batch is committed any more.
  ///   - add: adds the barrier under the admission lock, so that it may read the head before it.
  func request(_ completion: Completion, _ add: (inout Admission) -> Void) {
    if let refusal = withAdmission({ $0.addBarrier(add) }) { completion(.failure(refusal)) }
  }

  /// Calls `request` with a completion and waits for its result, on the calling thread.
  @discardableResult
  func wait(_ request: (@escaping Completion) -> Void) throws(EngineError) -> LogSequenceNumber? {
    let result = BlockingResult()
    request(result.set)
    if executor == nil { groupCommit.pump() }
    return try result.get()
  }

  /// `wait(_:)` without blocking a thread.
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

  /// Waits until every write admitted so far is durable. Not within a completion.
  ///
  /// The caller leads the turn, unless another thread has it.
  func synchronize() throws(EngineError) {
    guard let executor else {
      try wait(requestSynchronize)
      return
    }
    var barrier: BlockingResult?
    var batch: Batch?
    var turn: CommitSchedule.Turn?
    // The thread that has the turn looks at the batch again. A refusal on a full disk has the commit thread look for
    // room.
    let refusal = withAdmission { admission -> EngineError? in
      if let refusal = admission.addBarrier({ barrier = $0.batch.joinBarrier() }) { return refusal }
      turn = admission.lead(taking: &batch, by: BlockingExecutor.currentThreadID)
      return nil
    }
    if let refusal { throw refusal }
    if let turn, groupCommit.lead(turn, with: &batch) { executor.wake() }
    guard let barrier else { preconditionFailure("a barrier was refused without a reason") }
    _ = try barrier.get()
  }

  /// Begins a new segment of the log; every write admitted so far is durable once this returns.
  ///
  /// - Parameter body: reads the head behind which the segment begins, and returns whether one is needed.
  /// - Returns: the last write before the segment.
  @discardableResult
  func roll(
    after body: (borrowing Admission) -> Bool = { _ in true }
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

  /// Closes a pipeline whose commit thread could not be started, so that no caller waits for that thread.
  /// Call it before anything is admitted.
  func giveUp() { withAdmission { $0.phase = .closed } }

  // MARK: Following another process's writer

  /// Replaces the head by what a reader has found in the files, in one step, so that the durable LSN is
  /// never ahead of what the log proves.
  ///
  /// - Parameter showsDifference: whether the observer is called.
  func replaceHead(_ recovered: Recovery.Result, showsDifference: Bool = false) {
    withAdmission { $0.replace(recovered, showsDifference: showsDifference) }
  }
}

extension Admission {
  /// Adds a barrier to the open batch.
  ///
  /// - Returns: why no batch is committed any more.
  fileprivate mutating func addBarrier(_ add: (inout Admission) -> Void) -> EngineError? {
    switch phase {
    case .running, .withheld: break
    case .full(let error):
      schedule.wantsProbe = true
      return .diskFull(error)
    case .poisoned(let error): return error
    case .closing, .closed: return .closed
    }
    add(&self)
    return nil
  }
}

extension Batch {
  /// Has the next turn synchronize the batch, whatever the durability; `completion` is called after
  /// those before it.
  mutating func addSynchronize(_ completion: @escaping Completion) {
    wantsSynchronize = true
    completions.append(.init(result: .success(nil), completion: completion))
  }
}
