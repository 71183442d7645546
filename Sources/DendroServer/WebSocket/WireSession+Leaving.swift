import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

// What is to be written when the client leaves: it is kept until then, and written at the end.

extension WireSession {
  /// Registers what is to be written at the end, and answers once it is as durable as the database makes its writes.
  func keep(_ draft: Draft, _ number: Int64) {
    let registrant = Registrant(state.withLock { $0.authentication })
    let place = kept.withLock { $0?.registrants.number(of: registrant) }
    guard let place else { return refuse(number, .tooMuchKept, status: "too_big") }
    keep(.register(draft, by: place), number)
  }

  /// Whether an operation may be registered: if not, the client has got the reason.
  func allowsRegistering(_ draft: Draft, at path: Path, _ number: Int64) -> Bool {
    let encoded: EncodedWrite
    do throws(ValidationError) {
      encoded = try EncodedWrite(validating: draft)
    } catch {
      refuse(number, .validation(error))
      return false
    }
    let verdict = rights.verdict(
      writing: encoded, draft.locations, at: path, by: identity, on: namespace.engine.pin())
    if verdict.decision == .allow { return true }
    refuse(number, verdict)
    return false
  }

  /// Answers a change of what is to be written at the end once it is as durable as the database makes its writes.
  func keep(_ request: DisconnectJournal.Request, _ number: Int64) {
    let refusal = kept.withLock { session -> RESTError? in
      guard session != nil else { return RESTError(503, "The session has ended.") }
      let journal = namespace.journal
      if let journal, let progress = session?.progress, journal.hasEnded(id, progress) {
        close()
        return RESTError(503, "The session has ended.")
      }
      if let journal, journal.showsAll(of: session),
        hasLostEntry.exchange(false, ordering: .acquiring)
      {
        client.reset(to: journal.operations(of: id))
      }
      do throws(DatabaseError) {
        switch request {
        case .register(let draft, let registrant):
          guard try client.register(draft, upTo: service.sessionByteLimit) else {
            return .tooMuchKept
          }
          session?.registrants.note(draft, registrant)
        case .cancel(let path):
          guard try client.cancel(path, upTo: service.sessionByteLimit) else {
            return .tooMuchKept
          }
          // A session that has kept nothing has nothing to take back.
          if session?.isKept == false {
            answer(number)
            return nil
          }
        }
      } catch {
        return RESTError(error)
      }
      guard let journal else {
        answer(number)
        return nil
      }
      let neededByteCount = client.operations.byteCount
      journal.keep(request, of: id, &session!, neededByteCount: neededByteCount) { [self] error in
        guard let error else { return answer(number) }
        hasLostEntry.store(true, ordering: .releasing)
        let refusal = namespace.refusal(notLeading: DatabaseError(served: error))
        refuse(number, refusal ?? RESTError(503, "The operation could not be kept on the disk."))
      }
      return nil
    }
    guard let refusal else { return }
    refuse(number, refusal, status: refusal == .tooMuchKept ? "too_big" : nil)
  }

  // MARK: The end

  /// Whether another server has ended the session.
  var hasEndedElsewhere: Bool {
    guard let journal = namespace.journal else { return false }
    // One that takes no part any more does not see what others write; they take it for gone.
    let isStopped = namespace.peerStatus?.role == .stopped
    // A thread that holds it may wait for the disk, and so not for this.
    return kept.withLockIfAvailable { session in
      session.map { $0.isKept && (isStopped || journal.hasEnded(id, $0.progress)) } ?? false
    } ?? false
  }

  /// Closes the connection, whose end ends the session.
  func close() { connection.close(1000) }

  /// The connection is gone: writes what was to be written then, behind what the client has sent before.
  ///
  /// - Parameter then: called once that was written.
  func end(then: @escaping @Sendable () -> Void = {}) {
    let (isFirst, isFinished, listens) = state.withLock { state in
      if !state.isFinished { state.finished.append(then) }
      defer {
        state.isEnded = true
        state.listens = [:]
        state.lagging = [:]
        state.heldAnswers = []
      }
      return (!state.isEnded, state.isFinished, state.listens)
    }
    if isFinished { return then() }
    guard isFirst else { return }
    namespace.leaving.enter()
    for listen in listens.values { listen.stop(namespace.hub) }
    hasEnded.store(true, ordering: .sequentiallyConsistent)
    endWaitingForWrites()
    finishIfIdle()
  }

  /// Makes the last write if the client has left and nothing that it has sent waits or is performed.
  func finishIfIdle() {
    let isIdle = state.withLock { state in
      guard state.isEnded, !state.isFinishing, !state.isWaiting,
        !isPerforming.load(ordering: .sequentiallyConsistent)
      else { return false }
      state.isFinishing = true
      return true
    }
    // It may wait for the disk.
    if isIdle { namespace.writing.async { self.finish() } }
  }

  private func finish() {
    makeLastWrite()
    service.sessions.remove(self)
    let (finished, keptByteCount) = state.withLock { state in
      state.isFinished = true
      defer {
        state.finished = []
        state.keptByteCount = 0
      }
      return (state.finished, state.keptByteCount)
    }
    connection.account.addOwn(-keptByteCount)
    connection.account.finish()
    for body in finished { body() }
    namespace.leaving.leave()
  }

  private func makeLastWrite() {
    kept.withLock { session in
      let isKept = session?.isKept == true
      let registrants = session?.registrants ?? Registrants()
      session = nil
      let registered = client.finish()
      let identity = { registrants[$0]?.identity }
      if isKept, let journal = namespace.journal {
        return journal.end(id, rights, on: service.workers, identity: identity)
      }
      LastWrite(registered, rights, removal: nil, on: service.workers, identity: identity)
        .make { [namespace, client] write, judge, wasDenied in
          let completion: Completion = { result in
            guard case .failure(let error) = result else { return wasDenied(false) }
            if case .denied = error { return wasDenied(true) }
            if case .closed = error { return }
            client.report(error)
          }
          if let judge {
            namespace.engine.submit(write, judge: judge, completion: completion)
          } else {
            namespace.engine.submit(write, completion: completion)
          }
        }
    }
  }
}

extension RESTError {
  fileprivate static let tooMuchKept = RESTError(
    503, "The session has too much to be written at its end.")
}
