import DendroStorage
import DendroTree
import Dispatch
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
// once a transaction has been overtaken three times, writes at related paths wait for it.

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

  fileprivate mutating func reserve(_ path: Path) {
    if reservation == nil { reservation = Reservation(path) }
  }

  /// Lets everybody go who waits.
  mutating func release() {
    reservation?.release()
    reservation = nil
  }
}

/// A path that a transaction keeps to itself.
final class Reservation: Sendable {
  private let path: Path
  /// Entered until it is released.
  private let holder = DispatchGroup()

  init(_ path: Path) {
    self.path = path
    holder.enter()
  }

  /// Call once.
  func release() { holder.leave() }

  /// - Returns: whether it was released in time.
  func wait(_ patience: Duration) -> Bool {
    if Mutant.reservationPatience.isPlanted {
      holder.wait()
      return true
    }
    let (seconds, attoseconds) = min(patience, .seconds(86_400)).components
    let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
    return holder.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success
  }

  /// Whether the write changes the node at the path, one above or one below.
  func concerns(_ write: Write) -> Bool {
    guard isRelated(write.path) else { return false }
    guard case .update(let base, let entries) = write else { return true }
    return entries.contains { isRelated(base.appending($0.path)) }
  }

  private func isRelated(_ other: Path) -> Bool {
    path.isPrefix(of: other) || other.isPrefix(of: path)
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
    if state.transaction?.isHere == true, !Mutant.heldWrites.isPlanted {
      guard
        state.transaction?.heldWrites.count ?? 0 < Self.heldWriteLimit
          || Mutant.heldWriteLimit.isPlanted
      else {
        return .refused(.tooManyWaiting(limit: Self.heldWriteLimit))
      }
      state.transaction?.heldWrites.append((draft, completion))
      return .held
    }
    guard mayWait, let reservation = state.transaction?.reservation,
      reservation.concerns(draft.write)
    else { return .free }
    return .waits(reservation)
  }

  /// - Returns: whether the transaction ended in time; if not, the write goes ahead of it.
  func wait(for reservation: Reservation) -> Bool {
    waitingWriterCount.add(1, ordering: .relaxed)
    defer { waitingWriterCount.subtract(1, ordering: .relaxed) }
    return reservation.wait(options.reservationPatience)
  }

  // MARK: The transaction

  func transact(
    at path: Path, refused: @escaping @Sendable (EngineError) -> Void,
    decide: (Node) -> TransactionDecision
  ) {
    let limit = Mutant.transactionRunLimit.isPlanted ? .max : Self.transactionRunLimit
    for run in 1...limit {
      guard let input = begin(at: path, run: run, refused) else { break }
      if settle(decide(input), at: path, input) { break }
      if run == limit {
        refuse(.overtaken(path, runs: run), refused)
      }
    }
    // In their turn: after the transaction.
    for write in end() { submit(write.draft, completion: write.completion) }
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
      if run > Self.runsBeforeReservation, !Mutant.transactionReservation.isPlanted {
        state.transaction?.reserve(path)
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
    let ahead = encodeAhead(draft)
    defer { if let ahead { giveBack(ahead) } }
    let (isSettled, told) = withAdmission { state -> (Bool, ToldNow?) in
      guard state.root.node(at: path) == input || Mutant.transactionConflict.isPlanted else {
        return (false, nil)
      }
      let time = max(state.lastTime, now)
      let write = draft.resolved(time: time, against: state.root)
      let output: Node = if case .set(_, let node) = write { node } else { .empty }
      let decided = decision.completion
      // No number: equal data stay as they are.
      let completion: Completion = { decided($0.map { $0 == nil ? input : output }) }
      let refusal = admit(
        Draft(write), body: ahead, now: now, completion: completion, into: &state)
      return (true, refusal.flatMap { tell(completion, .failure($0), &state) })
    }
    told?()
    return isSettled
  }

  private func end() -> [(draft: Draft, completion: Completion?)] {
    withAdmission { state in
      let held = state.transaction?.heldWrites ?? []
      state.transaction?.release()
      state.transaction = nil
      return held
    }
  }

  // MARK: Telling

  private typealias ToldNow = @Sendable () -> Void

  /// Has `completion` told in its turn, after the writes before it; where nobody is any more, it is to
  /// be told by what this returns.
  private func tell(
    _ completion: @escaping Completion, _ result: Result<LogSequenceNumber?, EngineError>,
    _ state: inout Admission
  ) -> ToldNow? {
    if case .closed = state.phase { return { completion(result) } }
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
