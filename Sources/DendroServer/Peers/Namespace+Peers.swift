import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

// A database that several servers have together, of which one leads.

extension Namespace {
  /// Whether other servers have the database as well.
  var isShared: Bool { engine.sharedLog != nil }

  /// Whether another server makes what clients ask for here.
  var passesOn: Bool { engine.sharedLog?.passesOn ?? false }

  /// Has the server that leads judge and make a write.
  ///
  /// - Parameters:
  ///   - willWait: called if what the client asks for next has to wait.
  ///   - behind: called once it has not to any more.
  ///   - completion: called once this server shows what it says; with the data right behind the write, if that is
  ///     known.
  /// - Returns: whether what the client asks for next has not to wait.
  @discardableResult
  func pass(
    _ write: EncodedWrite, _ passed: PassedOnWrite, willWait: () -> Void = {},
    behind: @escaping @Sendable () -> Void = {},
    completion: @escaping @Sendable (WriteOutcome, Node?) -> Void
  ) -> Bool {
    if write.logByteCount > Sharing.writeByteLimit {
      completion(.failed(.writeTooLarge), nil)
      return true
    }
    let request = SharedRequest(write, context: PassedOnRequest.write(passed).bytes)
    let isPassed = engine.sharedLog?.pass(request, origin: passed.numbered?.origin) {
      [self] outcome, data in
      end(outcome, data, completion)
    }
    if isPassed == true { return true }
    // It has just begun to lead.
    if engine.isLeading, !passesOn, let requests = peerRequests.withLock({ $0 }) {
      willWait()
      writing.async { [self] in
        requests.make(request, origin: nil) { outcome, data in
          self.end(outcome, data, completion)
        }
        behind()
      }
      return false
    }
    let refusal = EngineError.unavailable("too much waits for the server that leads")
    completion(WriteOutcome(refusal, in: self), nil)
    return true
  }

  private func end(
    _ outcome: SharedRequestOutcome, _ data: Node?,
    _ completion: @Sendable (WriteOutcome, Node?) -> Void
  ) {
    switch outcome {
    case .made: completion(.made, data)
    case .stale: completion(.stale, data)
    case .answered(let bytes): completion(PassedOnAnswer.outcome(bytes), data)
    case .failed(let error): completion(WriteOutcome(error, in: self), data)
    }
  }

  // MARK: Sessions

  /// Names a session, among those of all servers.
  func makeSessionID() -> String { (engine.sharedLog?.opening ?? "") + WireSessions.makeID() }

  /// Whether a session is one of this server.
  func isOwn(session id: String) -> Bool {
    engine.sharedLog.map { id.hasPrefix($0.opening) } ?? true
  }

  /// Has the last write of a session of another server made before what is written next: its client is here now. It may
  /// wait.
  func endElsewhere(session id: String) {
    guard (try? Key(id)) != nil else { return }
    if passesOn {
      journal?.tellEnd(of: id)
    } else {
      guard let requests = peerRequests.withLock({ $0 }) else { return }
      requests.endSession(id) { [journal] error in
        switch error {
        case .unavailable, .undecided: journal?.noteUntold(id)
        default: break
        }
      }
    }
  }

  /// Whether the server of a session surely takes no part any more, as far as this one, which leads, can tell.
  func hasEnded(serverOf id: String) -> Bool {
    guard let log = engine.sharedLog else { return true }
    return log.hasEnded(id.prefix(log.opening.count))
  }

  /// Whether clients should be sent here with their writes.
  var leads: Bool { peerStatus?.role == .leader && engine.writeRefusal == nil }

  /// The answer to a write that this server refuses because another one leads; nil for every other error.
  func refusal(notLeading error: DatabaseError) -> RESTError? {
    guard case EngineError.unavailable(let reason)? = error.cause, let status = peerStatus else {
      return nil
    }
    switch status.role {
    case .leader: return nil
    case .stopped: return RESTError(503, "this server takes no part any more")
    case .follower:
      // Other reasons speak for themselves.
      guard reason.hasPrefix("another server leads") || reason.hasPrefix("no server leads") else {
        return nil
      }
      // It has led until now.
      if status.leader == status.server { return RESTError(503, "no server leads") }
      if let address = status.leaderAddress {
        return RESTError(503, "another server leads: \(address)")
      }
      return RESTError(503, status.leader == nil ? "no server leads" : "another server leads")
    }
  }

  /// Why no write is taken here at the moment, neither made nor passed on, since the others cannot be reached; nil if one
  /// is.
  var refusalToWrite: RESTError? {
    guard isShared, !passesOn, case .unavailable? = engine.writeRefusal else { return nil }
    return engine.writeRefusal.map { error in
      let error = DatabaseError(served: error)
      return refusal(notLeading: error) ?? RESTError(error)
    }
  }

  /// Whether this server has begun to lead since this was asked last, or has not made a last write while it could not.
  ///
  /// What sessions of the server before had registered is to be written then.
  func takeBeginning() -> Bool {
    guard isShared else { return false }
    let leads = engine.isLeading
    let hasLed = wasLeading.exchange(leads, ordering: .relaxed)
    guard leads else { return false }
    let isLeft = journal?.takeWithheld() ?? false
    return !hasLed || isLeft
  }

  /// Has writes end soon that wait for the other servers: the database is about to be closed.
  func stopWaiting() { engine.sharedLog?.engineCloses() }
}
