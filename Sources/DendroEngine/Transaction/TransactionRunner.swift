import DendroStorage
import DendroTree

/// Runs one transaction on the calling thread: the block reads the node at a path and decides, without any
/// lock; the decision is admitted only if the node is still the same.
///
/// Other writers ignore a transaction, with two exceptions in `Admission`: writes by the block's own thread
/// are kept until the transaction has ended (`BlockWrites`), and after three lost runs, writes at related paths
/// wait for it until its reservation times out.
struct TransactionRunner {
  /// The most runs of one transaction.
  static let runLimit = 25
  /// Lost runs after which writes at related paths wait.
  private static let runsBeforeReservation = 3
  /// Comparisons of trees, each overtaken by another write, after which a run is lost.
  private static let comparisonLimit = 4

  let pipeline: CommitPipeline
  let path: Path
  /// Called if no decision is admitted.
  let refused: @Sendable (EngineError) -> Void
  /// What the block writes.
  private let writes = BlockWrites()

  init(
    pipeline: CommitPipeline, path: Path, refused: @escaping @Sendable (EngineError) -> Void
  ) {
    self.pipeline = pipeline
    self.path = path
    self.refused = refused
  }

  func run(_ begun: () -> Void, _ decide: (Node) -> TransactionDecision) {
    pipeline.waitForDisk()
    begun()
    var reserved = path
    for run in 1...Self.runLimit {
      guard let input = begin(run, reserving: reserved) else { break }
      let decision = decide(input)
      if settle(decision, input) { break }
      // What a judge reads may be anywhere.
      if decision.judge?.isBounded == false { reserved = .root }
      if run == Self.runLimit { refuse(.overtaken(path, runs: run)) }
    }
  }

  /// Begins a run of the block.
  ///
  /// - Parameter reserved: where other writes wait for a late run.
  /// - Returns: the block's input; nil if no write would be admitted.
  private func begin(_ run: Int, reserving reserved: Path) -> Node? {
    let (input, pages, refusal) = pipeline.withAdmission {
      admission -> (Node, CheckpointPages?, EngineError?) in
      if run == 1 { admission.transactions.begin(writes) }
      if let refusal = admission.phase.refusal {
        if case .full = admission.phase { admission.schedule.wantsProbe = true }
        return (.empty, nil, refusal)
      }
      if run > Self.runsBeforeReservation {
        admission.transactions.reserve(
          reserved, timeout: pipeline.options.reservationTimeout, for: writes)
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

  /// Ends the transaction. `submitBlockWrites` has to follow, without the lock.
  private func end(_ admission: inout Admission) { admission.transactions.end(writes) }

  // MARK: The decision

  /// Admits the decision if the node at the path still equals `input`.
  ///
  /// - Returns: false if another write has changed it.
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
    let judging = decision.judge.map { Judging($0) }
    while comparisonCount < Self.comparisonLimit {
      switch admit(decision, draft, encoded, input, equal, judging) {
      case .settled: return true
      case .needsSecondRoot:
        do throws(EngineError) {
          try pipeline.addSecondRoot()
        } catch {
          refuse(error)
          return true
        }
      case .needsJudgement(let head, let time, let write):
        if judging?.needsReservation == true { comparisonCount += 1 }
        if let refusal = judging?.judge(write, on: head, time: time) {
          complete({ result in decision.completion(result.flatMap { _ in .failure(refusal) }) }) {
            _ in
            nil
          }
          return true
        }
      case .needsPages(let root, let pages, let write):
        if let failure = pipeline.load(pages, of: root, for: write) {
          refuse(failure)
          return true
        }
      case .changed(let current):
        comparisonCount += 1
        guard let current, current == input else { return false }
        equal = current
      }
    }
    return false
  }

  private enum Outcome {
    /// The decision was admitted or refused.
    case settled
    /// Nothing was admitted: this is the node at the path now; nil if it would have to be read.
    case changed(Node?)
    /// Nothing was admitted: the decision's write has to be judged first.
    case needsJudgement(HeadNode, time: Int64, EncodedWrite)
    /// Nothing was admitted: the log has to take writes to the second root first.
    case needsSecondRoot
    /// Nothing was admitted: pages that the decision's write needs have to be read first.
    case needsPages(Node, CheckpointPages, EncodedWrite)
  }

  /// Admits the decision if the node at the path is identical to `equal`.
  private func admit(
    _ decision: TransactionDecision, _ draft: Draft, _ encoded: EncodedWrite?, _ input: Node,
    _ equal: Node, _ judging: Judging?
  ) -> Outcome {
    let now = judging?.time ?? pipeline.clock.now()
    let gate = gate
    let (outcome, late) = pipeline.withAdmission { admission -> (Outcome, LateCompletion?) in
      guard let current = admission.loadedNode(at: path) else { return (.changed(nil), nil) }
      guard current.isIdentical(to: equal) else { return (.changed(current), nil) }
      let decided = draft.resolved(
        time: admission.nextTime(now), against: admission.root)
      let output: Node = if case .set(_, let node) = decided { node } else { .empty }
      // Equal nodes may have numbers of different types: unless it is the input itself, the whole is set.
      var change =
        current.isIdentical(to: input)
        ? encoded ?? shortest(decided, from: input) : EncodedWrite(decided)
      if decision.system != nil || decision.origin != nil {
        change = EncodedWrite(change, system: decision.system, origin: decision.origin)
      }
      change.prepare(isLogged: pipeline.isPersistent)
      // Without an LSN the write has changed nothing.
      let completion = held(by: gate) { [completion = decision.completion] result in
        completion(result.map { $0 == nil ? input : output })
      }
      var waits = PermittedWaits.none
      waits.judging = judging
      switch change.withView({ admission.offer($0, now: now, completion, &waits) }) {
      case .settled:
        end(&admission)
        return (.settled, nil)
      case .refused(let refusal):
        end(&admission)
        return (.settled, { completion(.failure(refusal)) })
      case .needsPages(let root, let pages): return (.needsPages(root, pages, change), nil)
      case .needsJudgement(let head, let time):
        return (.needsJudgement(head, time: time, change), nil)
      case .needsSecondRoot: return (.needsSecondRoot, nil)
      case .followsTransaction, .waitsForDisk, .waitsForTransaction, .needsMeasure,
        .needsComparison:
        preconditionFailure("nothing was permitted to be waited for")
      }
    }
    if case .settled = outcome { submitBlockWrites(late, gate) }
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

  // MARK: The end

  /// Calls a completion that no batch will call any more.
  private typealias LateCompletion = @Sendable () -> Void

  /// For the completions of a transaction whose block has written; nil if it has not.
  private var gate: CompletionGate? { writes.isEmpty ? nil : CompletionGate() }

  private func held(
    by gate: CompletionGate?, _ completion: @escaping Completion
  ) -> Completion {
    gate?.holding(completion) ?? completion
  }

  private func refuse(_ refusal: EngineError) {
    let refused = refused
    complete({ if case .failure(let error) = $0 { refused(error) } }) { _ in refusal }
  }

  /// Ends the transaction without a write, and calls `completion` after those of earlier writes.
  private func complete(
    _ completion: @escaping Completion, _ refusal: (borrowing Admission) -> EngineError?
  ) {
    let gate = gate
    let completion = held(by: gate, completion)
    let late = pipeline.withAdmission { admission -> LateCompletion? in
      let result: Result<LogSequenceNumber?, EngineError> =
        refusal(admission).map { .failure($0) } ?? .success(nil)
      end(&admission)
      if admission.complete(completion, result) { return nil }
      return { completion(result) }
    }
    submitBlockWrites(late, gate)
  }

  /// Submits what the block has written, now that the transaction has ended.
  private func submitBlockWrites(_ late: LateCompletion?, _ gate: CompletionGate?) {
    late?()
    guard let gate else { return }
    pipeline.submit(writes, gate)
    pipeline.withAdmission { $0.transactions.remove(writes) }
    gate.open()
  }
}

extension Admission {
  /// The node at a path; nil if pages on the way to it were not read yet.
  fileprivate func loadedNode(at path: Path) -> Node? {
    if let pages, pages.isPartial, !path.withStoredBytes({ root.isLoaded(along: $0) }) {
      return nil
    }
    return root.node(at: path)
  }
}
