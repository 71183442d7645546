import DendroStorage
import DendroTree
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// A transaction runs its block without any lock, on the head's node at its path, and is admitted only if
// that node is still the same. Other writers know nothing of it, with two exceptions, which they see in
// the admission state: what the block's own thread writes is held until the transaction has ended, and
// once a transaction has been overtaken three times, writes at related paths wait for it, for a while.

/// What admission knows of the transaction that is running.
struct RunningTransaction {
  /// Where the block runs.
  private let thread = pthread_self()
  /// Nil until writes at related paths have to wait.
  private(set) var reservation: Reservation?
  /// What the block has written, oldest first.
  fileprivate(set) var heldWrites: [(draft: Draft, completion: Completion?)] = []

  /// Whether the calling thread is the block's.
  var isHere: Bool { pthread_equal(thread, pthread_self()) != 0 }

  /// Once only: a transaction whose reservation has run out is not given another.
  fileprivate mutating func reserve(_ path: Path, patience: Duration) {
    if reservation == nil { reservation = Reservation(path, patience: patience) }
  }

  /// Lets everybody go who waits.
  func release() { reservation?.end() }

  /// What the block has written so far, which is to be admitted now.
  mutating func takeHeldWrites() -> [(draft: Draft, completion: Completion?)] {
    defer { heldWrites = [] }
    return heldWrites
  }
}

extension CommitPipeline {
  /// Runs of one transaction, the first included.
  static let transactionRunLimit = 25
  /// Lost runs after which writes at related paths wait.
  private static let runsBeforeReservation = 3
  /// Writes that one transaction's block may make.
  static let heldWriteLimit = 16_384

  // MARK: What other writers meet

  /// How a write stands to the running transaction.
  enum Standing {
    case free
    /// It was taken, and is admitted once the transaction has ended.
    case held
    case refused(EngineError)
    case waits(Reservation)
  }

  /// Called only while a transaction runs.
  func standing(
    of draft: Draft, _ completion: Completion?, mayWait: Bool, _ state: inout Admission
  ) -> Standing {
    guard case .running = state.phase else { return .free }
    // Not bound to a name: a second reference would make each append copy what is held.
    if state.transaction?.isHere == true {
      guard state.transaction?.heldWrites.count ?? 0 < Self.heldWriteLimit else {
        return .refused(.tooManyWaiting(limit: Self.heldWriteLimit))
      }
      state.transaction?.heldWrites.append((draft, completion))
      return .held
    }
    guard mayWait, let reservation = state.transaction?.reservation, !reservation.isOver,
      reservation.concerns(draft.write)
    else { return .free }
    return .waits(reservation)
  }

  // MARK: The transaction

  func transact(
    at path: Path, refused: @escaping @Sendable (EngineError) -> Void,
    decide: (Node) -> TransactionDecision
  ) {
    for run in 1...Self.transactionRunLimit {
      guard let input = begin(at: path, run: run, refused) else { break }
      if settle(decide(input), at: path, input) { break }
      if run == Self.transactionRunLimit {
        refuse(.overtaken(path, runs: run), refused)
      }
    }
    end()
    if executor != nil { backlog.wait() }
  }

  /// - Returns: what the next run is given; nil where no write would be admitted.
  private func begin(
    at path: Path, run: Int, _ refused: @escaping @Sendable (EngineError) -> Void
  ) -> Node? {
    let (input, refusal) = withAdmission { state -> (Node, EngineError?) in
      if run == 1 {
        precondition(state.transaction == nil, "transactions run one at a time")
        state.transaction = RunningTransaction()
      }
      if let refusal = state.phase.refusal {
        if case .full = state.phase { state.wantsProbe = true }
        return (.empty, refusal)
      }
      if run > Self.runsBeforeReservation {
        state.transaction?.reserve(path, patience: options.reservationPatience)
      }
      return (state.root.node(at: path), nil)
    }
    guard let refusal else { return input }
    refuse(refusal, refused)
    return nil
  }

  /// - Returns: false where another write was faster.
  private func settle(_ decision: TransactionDecision, at path: Path, _ input: Node) -> Bool {
    guard let draft = decision.draft else {
      let completion = decision.completion
      tell({ completion($0.map { _ in input }) }) { $0.phase.refusal }
      return true
    }
    let now = clock.now()
    let ahead = draft.deferred.isEmpty ? shortest(draft.write, from: input) : nil
    defer { if let body = ahead?.body { giveBack(body) } }
    let (isSettled, told) = withAdmission { state -> (Bool, ToldNow?) in
      let current = state.root.node(at: path)
      guard current == input else { return (false, nil) }
      let time = max(state.lastTime, now)
      let decided = draft.resolved(time: time, against: state.root)
      let output: Node = if case .set(_, let node) = decided { node } else { .empty }
      let completion = decision.completion
      // No number: equal data stay as they are.
      let told: Completion = { completion($0.map { $0 == nil ? input : output }) }
      // What was written there and back again may be numbers of other types now.
      let change =
        current.isIdentical(to: input)
        ? ahead ?? shortest(decided, from: input) : (write: decided, body: nil)
      defer { if ahead == nil, let body = change.body { giveBack(body) } }
      let refusal = admit(
        Draft(change.write), body: change.body, now: now, completion: told, into: &state)
      return (true, refusal.flatMap { tell(told, .failure($0), &state) })
    }
    told?()
    return isSettled
  }

  /// What takes the fewest bytes in the log of a decision's set and what it changes of `input`; with the
  /// encoded body, where that is not quickly made again.
  private func shortest(_ write: Write, from input: Node) -> (write: Write, body: PayloadBuffer?) {
    guard case .set(let path, let node) = write,
      let change = Write.changing(input, to: node, at: path)
    else { return (write, encodeAhead(Draft(write))) }
    guard let changed = encodeAhead(Draft(change.write)) else { return (change.write, nil) }
    // Mostly it is plain without the encoding of the whole, which may be long.
    if changed.count <= change.siblingCount * NodeCoding.childByteMin {
      return (change.write, changed)
    }
    guard let whole = encodeAhead(Draft(write)) else { return (change.write, changed) }
    let isShorter = changed.count < whole.count
    giveBack(isShorter ? whole : changed)
    return isShorter ? (change.write, changed) : (write, whole)
  }

  /// What the block has written comes in its turn, after the transaction. All of it at once: a close that
  /// is asked for from here on finds it admitted.
  private func end() {
    let now = clock.now()
    let refused = withAdmission { state in
      let held = state.transaction?.takeHeldWrites() ?? []
      state.transaction?.release()
      state.transaction = nil
      return admit(held, now: now, &state)
    }
    for (refusal, completion) in refused { tell(refusal, completion) }
  }

  /// - Returns: whom to tell of a refusal once the lock is free.
  func admit(
    _ held: [(draft: Draft, completion: Completion?)], now: Int64, _ state: inout Admission
  ) -> [(EngineError, Completion?)] {
    var refused: [(EngineError, Completion?)] = []
    for (draft, completion) in held {
      let refusal = admit(draft, body: nil, now: now, completion: completion, into: &state)
      if let refusal, !tellInTurn(refusal, completion, &state) {
        refused.append((refusal, completion))
      }
    }
    return refused
  }

  // MARK: Telling

  private typealias ToldNow = @Sendable () -> Void

  /// Has `completion` told in its turn, after the writes before it; where nobody is any more, it is to
  /// be told by what this returns.
  private func tell(
    _ completion: @escaping Completion, _ result: Result<LogSequenceNumber?, EngineError>,
    _ state: inout Admission
  ) -> ToldNow? {
    if case .closed = state.phase {
      return { completion(result) }
    }
    state.batch.waiting.append(.init(result: result, completion: completion))
    return nil
  }

  private func tell(
    _ completion: @escaping Completion, _ refusal: (borrowing Admission) -> EngineError?
  ) {
    let told = withAdmission { state -> ToldNow? in
      if let refusal = refusal(state) { return tell(completion, .failure(refusal), &state) }
      return tell(completion, .success(nil), &state)
    }
    told?()
  }

  private func refuse(
    _ refusal: EngineError, _ refused: @escaping @Sendable (EngineError) -> Void
  ) {
    tell({ if case .failure(let error) = $0 { refused(error) } }) { _ in refusal }
  }
}
