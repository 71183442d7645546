import DendroEngine
import DendroProtocol

/// What becomes of a client's write.
enum WriteOutcome: Sendable {
  case made
  case denied(AuthorizationVerdict)
  /// The data has not the hash that the write names.
  case stale
  case failed(RESTError)

  init(_ error: EngineError) {
    if case .writeTooLarge = error {
      self = .failed(.writeTooLarge)
    } else {
      self = .failed(RESTError(error))
    }
  }
}
