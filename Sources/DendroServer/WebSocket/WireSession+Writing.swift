import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Synchronization

// Writes of one client.

extension WireSession {
  /// Judges a write as far as that can be done without the data; nil if it is refused: the client has got the reason.
  ///
  /// - Parameter denied: called if it is not allowed.
  func judged(
    _ draft: Draft, at path: Path, alsoReads: Bool = false, _ number: Int64,
    denied: () -> Void = {}
  ) -> JudgedDraft? {
    let encoded: EncodedWrite
    do throws(ValidationError) {
      encoded = try EncodedWrite(validating: draft)
    } catch {
      refuse(number, .validation(error))
      return nil
    }
    let admission = service.rights(in: namespace).admission(
      of: encoded, draft.locations, at: path, by: identity, alsoReads: alsoReads,
      wantsTrace: wantsTrace)
    switch admission {
    case .refused(let verdict):
      refuse(number, verdict)
      if case .tooLarge = verdict.decision { return nil }
      denied()
      return nil
    case .free: return JudgedDraft(write: encoded, judge: nil)
    case .judged(let judge): return JudgedDraft(write: encoded, judge: judge)
    }
  }

  /// A write that may be made, or that has to be judged on the state to which it is admitted.
  struct JudgedDraft {
    let write: EncodedWrite
    let judge: RequestedWrite?
  }

  /// Whether the client is told how rules have decided: an administrator who asks as somebody else.
  private var wantsTrace: Bool { if case .standIn = identity { true } else { false } }

  /// - Parameter ended: called with the result before the answer.
  /// - Returns: false if the messages of this client that follow have to wait, since the disk is behind.
  func write(
    _ draft: JudgedDraft, _ number: Int64,
    ended: @escaping @Sendable (EngineError?) -> Void = { _ in }
  ) -> Bool {
    let start = ContinuousClock.now
    let completion: Completion = { [self] result in
      service.figures.writes.observe(since: start)
      switch result {
      case .success: ended(nil)
      case .failure(let error): ended(error)
      }
      afterEvents { session in
        switch result {
        case .success: session.answer(number)
        case .failure(.denied): session.refuse(number, draft.judge?.verdict ?? .deny)
        case .failure(let error): session.refuse(number, error)
        }
      }
    }
    if namespace.engine.submitAtOnce(draft.write, judge: draft.judge, completion: completion) {
      return true
    }
    state.withLock { $0.isWaiting = true }
    Task(executorPreference: service.executor) { [self] in
      await namespace.engine.submitSuspended(
        draft.write, judge: draft.judge, completion: completion)
      performWaiting()
    }
    return false
  }

  /// Writes only if what is there has the hash. The messages of this client that follow wait until that is
  /// decided.
  func transact(
    _ draft: Draft, _ judge: RequestedWrite?, at path: Path, isPriority: Bool, _ hash: String,
    _ number: Int64
  ) {
    state.withLock { $0.isWaiting = true }
    if isPriority {
      return transact(draft, judge, at: path, number) { current in
        TreeHash.hash(current.priority.map { Node($0) } ?? .empty) == hash
      }
    }
    let node: Node
    do throws(EngineError) {
      node = try namespace.engine.view(at: path)
    } catch {
      refuse(number, error)
      return performWaiting()
    }
    // Transactions run one after the other: in theirs, the state that has the hash is only compared with that of then.
    let begin = { @Sendable [self] in
      if TreeHash.hash(node) == hash {
        transact(draft, judge, at: path, number) { $0 == node }
      } else {
        afterEvents { $0.refuseStale(number) }
        performWaiting()
      }
    }
    if TreeHash.takesLong(node) { namespace.turns.async(for: self, begin) } else { begin() }
  }

  private func transact(
    _ draft: Draft, _ judge: RequestedWrite?, at path: Path, _ number: Int64,
    if isExpected: @escaping @Sendable (Node) -> Bool
  ) {
    let start = ContinuousClock.now
    namespace.database.transact(at: path, judge: judge) { current in
      isExpected(current) ? draft.asSet(over: current) : nil
    } admitted: { [self] in
      performWaiting()
    } completion: { result in
      self.service.figures.writes.observe(since: start)
      self.afterEvents { session in
        switch result {
        case .failure(let error) where error.code == .permissionDenied:
          session.refuse(number, judge?.verdict ?? .deny)
        case .failure(let error): session.refuse(number, RESTError(error))
        case .success(let outcome) where outcome.isWritten: session.answer(number)
        case .success: session.refuseStale(number)
        }
      }
    }
  }

  private func refuseStale(_ number: Int64) {
    refuse(number, .badRequest("Transaction hash does not match"), status: "datastale")
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
