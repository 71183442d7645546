import DendroStorage
import DendroTree

/// Runs one transaction: the block decides without any lock on the node at a path, and the decision is
/// admitted only if that node is still the same.
///
/// Other writers ignore a transaction, with two exceptions that `Admission` sees: what the block's own
/// thread writes is held until the transaction has ended, and once a transaction was overtaken three
/// times, writes at related paths wait for it until its reservation times out.
struct TransactionRunner {
  /// Runs of one transaction, the first included.
  static let runLimit = 25
  /// Lost runs after which writes at related paths wait.
  private static let runsBeforeReservation = 3
  /// Comparisons of trees after which a run is lost.
  private static let comparisonLimit = 4

  let pipeline: CommitPipeline
  let path: Path
  /// Called where no decision is admitted.
  let refused: @Sendable (EngineError) -> Void

  func run(_ decide: (Node) -> TransactionDecision) {
    pipeline.waitForDisk()
    for run in 1...Self.runLimit {
      guard let input = begin(run) else { break }
      if settle(decide(input), input) { break }
      if run == Self.runLimit { refuse(.overtaken(path, runs: run)) }
    }
    end()
  }

  /// - Returns: the block's input; nil where no write would be admitted.
  private func begin(_ run: Int) -> Node? {
    let (input, refusal) = pipeline.withAdmission { admission -> (Node, EngineError?) in
      if run == 1 {
        precondition(admission.transaction == nil, "transactions run one at a time")
        admission.transaction = RunningTransaction()
      }
      if let refusal = admission.phase.refusal {
        if case .full = admission.phase { admission.wantsProbe = true }
        return (.empty, refusal)
      }
      if run > Self.runsBeforeReservation {
        admission.transaction?.reserve(path, timeout: pipeline.options.reservationTimeout)
      }
      return (admission.root.node(at: path), nil)
    }
    guard let refusal else { return input }
    refuse(refusal)
    return nil
  }

  /// Admits what the block has written, after the transaction and at once: a close that is requested from
  /// here on finds it admitted.
  private func end() {
    let now = pipeline.clock.now()
    let refused = pipeline.withAdmission { admission in
      let held = admission.transaction?.takeHeldWrites() ?? []
      admission.transaction?.release()
      admission.transaction = nil
      return admission.admit(held, now: now)
    }
    for (refusal, completion) in refused { pipeline.report(refusal, completion) }
  }

  // MARK: The decision

  /// Admits the decision where the node at the path still equals `input`.
  ///
  /// - Returns: false where another write has changed it.
  private func settle(_ decision: TransactionDecision, _ input: Node) -> Bool {
    guard let draft = decision.draft else {
      let completion = decision.completion
      complete({ completion($0.map { _ in input }) }) { $0.phase.refusal }
      return true
    }
    if pipeline.options.memoryByteLimit != nil { pipeline.measureMemory(for: draft) }
    let encoded = draft.deferred.isEmpty ? shortest(draft.write, from: input) : nil
    defer { if let body = encoded?.body { pipeline.buffers.giveBack(body) } }
    // Trees that share nothing are compared without the lock: admission only asks whether the node is the
    // one that was found equal.
    var equal = input
    for _ in 0..<Self.comparisonLimit {
      guard let current = admit(draft, encoded, decision.completion, input, equal) else {
        return true
      }
      guard current == input else { return false }
      equal = current
    }
    return false
  }

  private typealias EncodedWrite = (write: Write, body: PayloadBuffer?)

  /// Admits the decision where the node at the path is `equal`.
  ///
  /// - Returns: nil then, also where the write is refused; else the node at the path.
  private func admit(
    _ draft: Draft, _ encoded: EncodedWrite?,
    _ completion: @escaping @Sendable (Result<Node, EngineError>) -> Void, _ input: Node,
    _ equal: Node
  ) -> Node? {
    let now = pipeline.clock.now()
    let (current, late) = pipeline.withAdmission { admission -> (Node?, LateCompletion?) in
      let current = admission.root.node(at: path)
      guard current.isIdentical(to: equal) else { return (current, nil) }
      let decided = draft.resolved(
        time: max(admission.lastTime, now), against: admission.root)
      let output: Node = if case .set(_, let node) = decided { node } else { .empty }
      // Without an LSN the data have stayed as they were.
      let completion: Completion = { completion($0.map { $0 == nil ? input : output }) }
      // A node that was written back may have numbers of other types: then the whole is set.
      let change =
        current.isIdentical(to: input)
        ? encoded ?? shortest(decided, from: input) : (write: decided, body: nil)
      defer { if encoded == nil, let body = change.body { pipeline.buffers.giveBack(body) } }
      let refusal = admission.admit(
        Draft(change.write), body: change.body, now: now, completion: completion)
      guard let refusal, !admission.complete(completion, .failure(refusal)) else {
        return (nil, nil)
      }
      return (nil, { completion(.failure(refusal)) })
    }
    late?()
    return current
  }

  /// The write that takes the fewest bytes in the log, of a decision's set and what that changes of
  /// `input`; with the encoded body, where encoding it again would take long.
  private func shortest(_ write: Write, from input: Node) -> EncodedWrite {
    guard case .set(let path, let node) = write,
      let change = Write.changing(input, to: node, at: path)
    else { return (write, pipeline.encodeAhead(Draft(write))) }
    guard let changed = pipeline.encodeAhead(Draft(change.write)) else {
      return (change.write, nil)
    }
    // Mostly that is clear without encoding the whole, which may be long.
    if changed.count <= change.siblingCount * NodeCoding.childByteMin {
      return (change.write, changed)
    }
    guard let whole = pipeline.encodeAhead(Draft(write)) else { return (change.write, changed) }
    let isShorter = changed.count < whole.count
    pipeline.buffers.giveBack(isShorter ? whole : changed)
    return isShorter ? (change.write, changed) : (write, whole)
  }

  // MARK: Completions

  /// Calls a completion that no batch will call any more.
  private typealias LateCompletion = @Sendable () -> Void

  private func refuse(_ refusal: EngineError) {
    let refused = refused
    complete({ if case .failure(let error) = $0 { refused(error) } }) { _ in refusal }
  }

  /// Calls `completion` after those of the writes before.
  private func complete(
    _ completion: @escaping Completion, _ refusal: (Admission) -> EngineError?
  ) {
    let late = pipeline.withAdmission { admission -> LateCompletion? in
      let result: Result<LogSequenceNumber?, EngineError> =
        refusal(admission).map { .failure($0) } ?? .success(nil)
      if admission.complete(completion, result) { return nil }
      return { completion(result) }
    }
    late?()
  }
}
