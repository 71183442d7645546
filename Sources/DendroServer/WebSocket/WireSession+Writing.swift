import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Synchronization

// Writes of one client.

extension WireSession {
  func allowsWrite(_ draft: Draft, at path: Path) -> Bool {
    service.authorizer.admits(
      AuthorizationRequest(.write, at: path, by: identity, draft: draft, in: namespace.database))
  }

  func write(_ draft: Draft, _ number: Int64) {
    let start = ContinuousClock.now
    namespace.engine.submit(draft) { result in
      self.service.figures.writes.observe(since: start)
      self.afterEvents { session in
        switch result {
        case .success: session.answer(number)
        case .failure(let error): session.refuse(number, error)
        }
      }
    }
  }

  /// Writes only if what is there has the hash. The messages of this client that follow wait until that is
  /// decided.
  func transact(
    _ draft: Draft, at path: Path, isPriority: Bool, _ hash: String, _ number: Int64
  ) {
    state.withLock { $0.isWaiting = true }
    let start = ContinuousClock.now
    namespace.database.transact(at: path) { current in
      let compared = isPriority ? current.priority.map { Node($0) } ?? .empty : current
      return TreeHash.hash(compared) == hash ? draft.asSet(over: current) : nil
    } admitted: { [self] in
      performWaiting()
    } completion: { result in
      self.service.figures.writes.observe(since: start)
      self.afterEvents { session in
        switch result {
        case .failure(let error): session.refuse(number, RESTError(error))
        case .success(let outcome) where outcome.isWritten: session.answer(number)
        case .success:
          session.refuse(
            number, .badRequest("Transaction hash does not match"), status: "datastale")
        }
      }
    }
  }

  /// Refuses a message of which only the number is known. A client whose connection were closed instead would
  /// send it again over the next one, and so on.
  func refuseTooLarge(_ number: Int64) { refuse(number, .writeTooLarge, status: "too_big") }

  func refuse(_ number: Int64, _ error: EngineError) {
    if case .writeTooLarge = error { return refuseTooLarge(number) }
    refuse(number, RESTError(error))
  }
}
