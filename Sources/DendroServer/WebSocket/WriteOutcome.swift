import Dendro
import DendroEngine
import DendroProtocol

/// What becomes of a client's write.
enum WriteOutcome: Sendable {
  case made
  case denied(AuthorizationVerdict)
  /// The data has not the hash that the write names.
  case stale
  case failed(RESTError)

  /// The number of the write is another one's.
  static let otherNumber = failed(.badRequest("The number of the write is that of another one"))

  init(_ error: EngineError, in namespace: Namespace) {
    if case .writeTooLarge = error {
      self = .failed(.writeTooLarge)
    } else {
      self.init(DatabaseError(served: error), in: namespace)
    }
  }

  init(_ error: DatabaseError, in namespace: Namespace) {
    self = .failed(namespace.refusal(notLeading: error) ?? RESTError(error))
  }
}
