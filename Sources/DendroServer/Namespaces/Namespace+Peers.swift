import Dendro
import DendroEngine
import DendroProtocol
import Synchronization

// A database that several servers have together, of which one leads.

extension Namespace {
  /// Whether other servers have the database as well.
  var isShared: Bool { engine.sharedLog != nil }

  /// Whether clients should be sent here with their writes.
  var leads: Bool { peerStatus?.role == .leader && engine.writeRefusal == nil }

  /// The answer to a write that this server refuses because another one leads; nil for every other error.
  func refusal(notLeading error: DatabaseError) -> RESTError? {
    guard case EngineError.unavailable? = error.cause, let status = peerStatus else { return nil }
    switch status.role {
    case .leader: return nil
    case .stopped: return RESTError(503, "this server takes no part any more")
    case .follower:
      if let address = status.leaderAddress {
        return RESTError(503, "another server leads: \(address)")
      }
      return RESTError(503, status.leader == nil ? "no server leads" : "another server leads")
    }
  }

  /// Why no write is taken here at the moment, since another server leads or the others cannot be reached; nil if that is
  /// not so.
  ///
  /// A client's write is refused rather than passed on to the leader, which does not know what this server would allow, nor
  /// when the client leaves.
  var refusalToWrite: RESTError? {
    guard isShared, case .unavailable? = engine.writeRefusal else { return nil }
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
