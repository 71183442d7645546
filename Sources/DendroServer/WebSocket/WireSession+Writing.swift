import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Synchronization

// Writes of one client.

/// A write that a client has asked for, and that has no answer yet.
///
/// It has what the answer needs and no more: the write is given back on the thread that has made it.
private final class AskedWrite: Sendable {
  private let session: WireSession
  private let number: Int64
  private let verdict: LastVerdict?
  private let ended: (@Sendable (WriteOutcome) -> Void)?
  private let start = ContinuousClock.now
  private let isAnswered = Atomic<Bool>(false)
  private let isShared: Bool
  /// Of the write among those that are given up; nil if it is not.
  private let unanswered = Mutex<UnansweredWrites.ID?>(nil)

  init(
    _ session: WireSession, _ number: Int64, _ verdict: LastVerdict?, isNumbered: Bool,
    ended: (@Sendable (WriteOutcome) -> Void)?
  ) {
    self.session = session
    self.number = number
    self.verdict = verdict
    self.ended = ended
    isShared = session.namespace.isShared
    guard isShared else { return }
    session.writesUnderWay.add(1, ordering: .relaxed)
    // Its client keeps it, and would only send it again.
    if isNumbered { return }
    let id = session.namespace.unanswered.add { [self] in answer(.failed(.outcomeUnknown)) }
    unanswered.withLock { $0 = id }
  }

  func end(_ result: Result<LogSequenceNumber?, EngineError>) {
    switch result {
    case .success: end(.made)
    case .failure(.denied): end(.denied(verdict?.verdict ?? .deny))
    case .failure(let error): end(WriteOutcome(error, in: session.namespace))
    }
  }

  func end(_ outcome: WriteOutcome) {
    session.service.figures.writes.observe(since: start)
    ended?(outcome)
    answer(outcome)
    guard isShared else { return }
    if let id = unanswered.withLock({ $0 }) { session.namespace.unanswered.remove(id) }
    session.endWrite()
  }

  private func answer(_ outcome: WriteOutcome) {
    guard !isAnswered.exchange(true, ordering: .relaxed) else { return }
    session.answerAfterEvents(number, outcome)
  }
}

extension WireSession {
  /// - Returns: false if the messages of this client that follow have to wait, since the disk is behind, or a condition is
  ///   still looked at.
  func write(
    _ draft: Draft, at path: Path, if condition: WriteCondition?, _ number: Int64
  ) -> Bool {
    if namespace.passesOn { return passOn(draft, at: path, if: condition, nil, number) }
    switch judged(draft, at: path, if: condition) {
    case .success(let judged): return write(judged, number)
    case .failure(let refusal):
      answer(number, refusal.outcome)
      return true
    }
  }

  /// A write that can never be made.
  struct Refusal: Error {
    let outcome: WriteOutcome
  }

  /// A write that may be made, or that has to be judged on the state to which it is admitted.
  struct JudgedDraft {
    let path: Path
    /// The write is made if that is so.
    let condition: (draft: Draft, condition: WriteCondition)?
    let write: EncodedWrite
    let judge: RequestedWrite?
    /// What the same write changes in the second root.
    var system: EncodedWrite?
    var origin: WriteOrigin?
  }

  /// Judges a write as far as that can be done without the data.
  func judged(
    _ draft: Draft, at path: Path, if condition: WriteCondition?
  ) -> Result<JudgedDraft, Refusal> {
    let encoded = EncodedWrite(draft)
    // The answer says whether the data has the hash, so the client must be allowed to read it.
    let admission = rights.admission(
      of: encoded, draft.locations, at: path, by: identity, alsoReads: condition != nil,
      wantsTrace: wantsTrace)
    var judge: RequestedWrite?
    switch admission {
    case .refused(let verdict): return .failure(Refusal(outcome: .denied(verdict)))
    case .free: break
    case .judged(let own): judge = own
    }
    if condition != nil, let refusal = refusal(ofReading: path, nil) {
      return .failure(Refusal(outcome: .failed(refusal)))
    }
    return .success(
      JudgedDraft(
        path: path, condition: condition.map { (draft, $0) }, write: encoded, judge: judge))
  }

  /// Whether answers say how the rules decided: an administrator asks under another identity.
  var wantsTrace: Bool { if case .standIn = identity { true } else { false } }

  /// - Parameter ended: called with the result before the answer.
  /// - Returns: false if the messages of this client that follow have to wait.
  func write(
    _ judged: JudgedDraft, _ number: Int64, ended: (@Sendable (WriteOutcome) -> Void)? = nil
  ) -> Bool {
    let asked = AskedWrite(
      self, number, judged.judge?.last, isNumbered: judged.origin != nil, ended: ended)
    if let refusal = namespace.refusalToWrite {
      asked.end(.failed(refusal))
      return true
    }
    if let (draft, condition) = judged.condition {
      transact(judged, draft, if: condition) { asked.end($0) }
      return false
    }
    let completion: Completion = { asked.end($0) }
    var write = judged.write
    if judged.system != nil {
      write = EncodedWrite(write, system: judged.system, origin: judged.origin)
    }
    if namespace.engine.submitAtOnce(write, judge: judged.judge, completion: completion) {
      return true
    }
    state.withLock { $0.isWaiting = true }
    Task(executorPreference: service.executor) { [self, write] in
      await namespace.engine.submitSuspended(write, judge: judged.judge, completion: completion)
      performWaiting()
    }
    return false
  }

  /// Writes only if what is there has the hash. The messages of this client that follow wait until that is
  /// decided.
  private func transact(
    _ judged: JudgedDraft, _ draft: Draft, if condition: WriteCondition,
    _ end: @escaping @Sendable (WriteOutcome) -> Void
  ) {
    let hash = condition.hash
    state.withLock { $0.isWaiting = true }
    if condition.isPriority {
      return transact(judged, draft, end) { current in
        TreeHash.hash(current.priority.map { Node($0) } ?? .empty) == hash
      }
    }
    let node: Node
    do throws(EngineError) {
      node = try namespace.engine.view(at: judged.path)
    } catch {
      end(WriteOutcome(error, in: namespace))
      return performWaiting()
    }
    // Transactions run one after the other: in theirs, the state that has the hash is only compared with that of then.
    let begin = { @Sendable [self] in
      if TreeHash.hash(node) == hash {
        transact(judged, draft, end) { $0 == node }
      } else {
        end(.stale)
        performWaiting()
      }
    }
    guard TreeHash.takesLong(node) else { return begin() }
    namespace.turns.async(for: self, at: connection.account.address, begin)
  }

  private func transact(
    _ judged: JudgedDraft, _ draft: Draft, _ end: @escaping @Sendable (WriteOutcome) -> Void,
    if isExpected: @escaping @Sendable (Node) -> Bool
  ) {
    namespace.database.transact(
      at: judged.path, judge: judged.judge, system: judged.system, origin: judged.origin
    ) { current in
      isExpected(current) ? draft.asSet(over: current) : nil
    } admitted: { [self] in
      performWaiting()
    } completion: { [namespace] result in
      switch result {
      case .failure(let error) where error.code == .permissionDenied:
        end(.denied(judged.judge?.verdict ?? .deny))
      case .failure(let error): end(WriteOutcome(error, in: namespace))
      case .success(let outcome): end(outcome.isWritten ? .made : .stale)
      }
    }
  }

  /// Answers a write.
  func answer(_ number: Int64, _ outcome: WriteOutcome) {
    switch outcome {
    case .made: answer(number)
    case .denied(let verdict): refuse(number, verdict)
    case .stale:
      refuse(
        number, .badRequest("Transaction hash does not match"), status: "datastale")
    case .failed(let error): refuse(number, error)
    }
  }

  /// Refuses a message of which only the number is known. A client whose connection were closed instead would
  /// send it again over the next one, and so on.
  func refuseTooLarge(_ number: Int64) { refuse(number, .writeTooLarge) }

  /// Refuses a write that is not allowed.
  func refuse(_ number: Int64, _ verdict: AuthorizationVerdict) {
    if case .tooLarge = verdict.decision { return refuseTooLarge(number) }
    if let trace = verdict.trace { connection.send(WireText.debug(trace)) }
    refuse(number, .permissionDenied)
  }

  func refuse(_ number: Int64, _ error: EngineError) {
    if case .writeTooLarge = error { return refuseTooLarge(number) }
    refuse(number, RESTError(error))
  }
}
