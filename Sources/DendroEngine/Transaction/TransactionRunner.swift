import DendroStorage
import DendroTree

/// Runs one transaction on the calling thread: the block reads the node at a path and decides, without any
/// lock; the decision is admitted only if the node is still the same.
///
/// Other writers ignore a transaction, with two exceptions in `Admission`: writes by the block's own thread
/// are held until the transaction has ended, and after three lost runs, writes at related paths wait for it
/// until its reservation times out.
struct TransactionRunner {
  /// The most runs of one transaction.
  static let runLimit = 25
  /// Lost runs after which writes at related paths wait.
  private static let runsBeforeReservation = 3
  /// Comparisons of trees, each overtaken by another write, after which a run is lost.
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
  }

  /// Begins a run of the block.
  ///
  /// - Returns: the block's input; nil where no write would be admitted.
  private func begin(_ run: Int) -> Node? {
    let (input, pages, refusal) = pipeline.withAdmission {
      admission -> (Node, CheckpointPages?, EngineError?) in
      if run == 1 {
        precondition(admission.transaction == nil, "transactions run one at a time")
        admission.transaction = RunningTransaction()
      }
      if let refusal = admission.phase.refusal {
        if case .full = admission.phase { admission.wantsProbe = true }
        return (.empty, nil, refusal)
      }
      if run > Self.runsBeforeReservation {
        admission.transaction?.reserve(path, timeout: pipeline.options.reservationTimeout)
      }
      // The pages on the way are read without the lock.
      if let pages = admission.pages, pages.isPartial { return (admission.root, pages, nil) }
      return (admission.root.node(at: path), nil, nil)
    }
    if let refusal {
      refuse(refusal)
      return nil
    }
    guard let pages else { return input }
    do throws(EngineError) {
      return try pages.reading { () throws(PageFailure) in
        try input.load(along: path)
        let node = input.node(at: path)
        try node.load()
        return node
      }
    } catch {
      refuse(error)
      return nil
    }
  }

  /// Ends the transaction, and admits the writes that the block has made. Under the lock that admits the
  /// decision: a caller that learns the outcome can read these writes, and a close that is requested later comes after
  /// them.
  ///
  /// - Returns: the refusals to report without the lock.
  private func end(_ admission: inout Admission, now: Int64) -> [(EngineError, Completion?)] {
    let held = admission.transaction?.heldWrites ?? []
    admission.transaction?.release()
    admission.transaction = nil
    return admission.admit(held, now: now)
  }

  private func report(_ refused: [(EngineError, Completion?)]) {
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
    let encoded = draft.deferred.isEmpty ? shortest(draft.write, from: input) : nil
    if pipeline.options.memoryByteLimit != nil {
      pipeline.measureMemory(for: (encoded ?? EncodedWrite(draft)).facts)
    }
    // Comparing trees that share nothing takes long. So it is done without the lock, and under the lock only
    // the identity of the node with the one that was found equal is checked.
    var equal = input
    var comparisonCount = 0
    while comparisonCount < Self.comparisonLimit {
      switch admit(draft, encoded, decision.completion, input, equal) {
      case .settled: return true
      case .needsPages(let needed, let own):
        pipeline.load(needed)
        if let failure = own.failure {
          refuse(failure)
          return true
        }
      case .changed(let current):
        comparisonCount += 1
        guard current == input else { return false }
        equal = current
      }
    }
    return false
  }

  private enum Outcome {
    /// The decision was admitted or refused.
    case settled
    /// Nothing was admitted: this is the node at the path now.
    case changed(Node)
    /// Nothing was admitted: pages have to be read first, perhaps for the decision's own write.
    case needsPages(NeededPages, own: HeldWrite)
  }

  /// Admits the decision if the node at the path is identical to `equal`.
  private func admit(
    _ draft: Draft, _ encoded: EncodedWrite?,
    _ completion: @escaping @Sendable (Result<Node, EngineError>) -> Void, _ input: Node,
    _ equal: Node
  ) -> Outcome {
    let now = pipeline.clock.now()
    let (outcome, late, refused) = pipeline.withAdmission {
      admission -> (Outcome, LateCompletion?, [(EngineError, Completion?)]) in
      let current = admission.root.node(at: path)
      guard current.isIdentical(to: equal) else { return (.changed(current), nil, []) }
      let decided = draft.resolved(
        time: admission.nextTime(now), against: admission.root)
      let output: Node = if case .set(_, let node) = decided { node } else { .empty }
      // Equal nodes may have numbers of different types: unless it is the input itself, the whole is set.
      let change =
        current.isIdentical(to: input)
        ? encoded ?? shortest(decided, from: input) : EncodedWrite(decided)
      change.prepare(isLogged: pipeline.isPersistent)
      // Without an LSN the write has changed nothing.
      let completion: Completion = { completion($0.map { $0 == nil ? input : output }) }
      let held = admission.transaction?.heldWrites ?? []
      let own = HeldWrite(change, nil)
      if let needed = admission.neededPages(for: held + [own]) {
        return (.needsPages(needed, own: own), nil, [])
      }
      let refusal = change.withView { admission.admit($0, now: now, completion: completion) }
      let isCompleted = refusal.map { admission.complete(completion, .failure($0)) } ?? true
      let refused = end(&admission, now: now)
      guard let refusal, !isCompleted else { return (.settled, nil, refused) }
      return (.settled, { completion(.failure(refusal)) }, refused)
    }
    late?()
    report(refused)
    return outcome
  }

  /// The bytes of an encoded leaf up to which it is not compared with the whole.
  private static let shortLeafByteCountMax = 1024

  /// Returns the shorter of two writes in the log: the decision's set, or an update with what that changes
  /// in `input`.
  private func shortest(_ write: Write, from input: Node) -> EncodedWrite {
    guard case .set(let path, let node) = write,
      let change = Write.changing(input, to: node, at: path)
    else { return prepared(write) }
    let changed = prepared(change.write)
    switch change.write {
    case .remove, .increment, .setPriority: return changed
    case .set(_, let leaf):
      if let count = leaf.packedLeafByteCount, count <= Self.shortLeafByteCountMax {
        return changed
      }
    case .update: break
    }
    // In most cases this lower bound decides, without encoding the whole.
    if changed.logByteCount <= change.siblingCount * NodeCoding.childByteMin { return changed }
    let whole = prepared(write)
    return changed.logByteCount < whole.logByteCount ? changed : whole
  }

  private func prepared(_ write: Write) -> EncodedWrite {
    let encoded = EncodedWrite(write)
    encoded.prepare(isLogged: pipeline.isPersistent)
    return encoded
  }

  // MARK: Completions

  /// Calls a completion that no batch will call any more.
  private typealias LateCompletion = @Sendable () -> Void

  private func refuse(_ refusal: EngineError) {
    let refused = refused
    complete({ if case .failure(let error) = $0 { refused(error) } }) { _ in refusal }
  }

  /// Ends the transaction without a write, and calls `completion` after those of earlier writes.
  private func complete(
    _ completion: @escaping Completion, _ refusal: (borrowing Admission) -> EngineError?
  ) {
    while true {
      let now = pipeline.clock.now()
      let (needed, late, refused) = pipeline.withAdmission {
        admission -> (NeededPages?, LateCompletion?, [(EngineError, Completion?)]) in
        if let needed = admission.neededPages(for: admission.transaction?.heldWrites ?? []) {
          return (needed, nil, [])
        }
        let result: Result<LogSequenceNumber?, EngineError> =
          refusal(admission).map { .failure($0) } ?? .success(nil)
        let isCompleted = admission.complete(completion, result)
        let refused = end(&admission, now: now)
        if isCompleted { return (nil, nil, refused) }
        return (nil, { completion(result) }, refused)
      }
      guard let needed else {
        late?()
        return report(refused)
      }
      pipeline.load(needed)
    }
  }
}
