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

  /// - Returns: false if the messages of this client that follow have to wait, since the disk is behind.
  func write(_ draft: Draft, _ number: Int64) -> Bool {
    let start = ContinuousClock.now
    let completion = { @Sendable [self] (result: Result<LogSequenceNumber?, EngineError>) in
      service.figures.writes.observe(since: start)
      afterEvents { session in
        switch result {
        case .success: session.answer(number)
        case .failure(let error): session.refuse(number, error)
        }
      }
    }
    let write: EncodedWrite
    do throws(ValidationError) {
      write = try EncodedWrite(validating: draft)
    } catch {
      completion(.failure(.validation(error)))
      return true
    }
    if namespace.engine.submitAtOnce(write, completion: completion) { return true }
    state.withLock { $0.isWaiting = true }
    Task(executorPreference: service.executor) { [self] in
      await namespace.engine.submitSuspended(write, completion: completion)
      performWaiting()
    }
    return false
  }

  /// Writes only if what is there has the hash. The messages of this client that follow wait until that is
  /// decided.
  func transact(
    _ draft: Draft, at path: Path, isPriority: Bool, _ hash: String, _ number: Int64
  ) {
    state.withLock { $0.isWaiting = true }
    if isPriority {
      return transact(draft, at: path, number) { current in
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
        transact(draft, at: path, number) { $0 == node }
      } else {
        afterEvents { $0.refuseStale(number) }
        performWaiting()
      }
    }
    if node.isBranch { namespace.turns.async(for: self, begin) } else { begin() }
  }

  private func transact(
    _ draft: Draft, at path: Path, _ number: Int64,
    if isExpected: @escaping @Sendable (Node) -> Bool
  ) {
    let start = ContinuousClock.now
    namespace.database.transact(at: path) { current in
      isExpected(current) ? draft.asSet(over: current) : nil
    } admitted: { [self] in
      performWaiting()
    } completion: { result in
      self.service.figures.writes.observe(since: start)
      self.afterEvents { session in
        switch result {
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
  func refuseTooLarge(_ number: Int64) { refuse(number, .writeTooLarge, status: "too_big") }

  func refuse(_ number: Int64, _ error: EngineError) {
    if case .writeTooLarge = error { return refuseTooLarge(number) }
    refuse(number, RESTError(error))
  }
}
