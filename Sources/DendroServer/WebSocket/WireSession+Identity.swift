import DendroProtocol
import DendroTree
import Synchronization

// Who the client is, and what it may no longer listen to when that changes.

extension WireSession {
  func signIn(_ credentials: Credentials, _ number: Int64) {
    do throws(RESTError) {
      let authentication = try service.authenticator.authentication(of: credentials)
      change(to: authentication)
      var auth = "null"
      if case .user(_, let claims, _) = authentication.identity {
        auth = claims
      }
      // Far away: tokens without a signature do not expire.
      let expiry = authentication.expiry ?? 4_102_444_800
      answer(number, .json("{\"auth\":\(auth),\"expires\":\(expiry)}"))
    } catch {
      refuse(number, error, status: error.tokenStatus)
    }
  }

  func change(to authentication: Authentication) {
    state.withLock { state in
      state.authentication = authentication
      state.authenticationCount += 1
    }
    reauthorize()
  }

  /// Judges every listen again.
  func reauthorize() {
    let (listens, identity) = state.withLock { ($0.listens, $0.authentication.identity) }
    for (location, listen) in listens where !allowsListen(location, by: identity) {
      let isOpen = state.withLock { state in
        guard state.listens[location] === listen else { return false }
        state.listens[location] = nil
        return true
      }
      guard isOpen else { continue }
      listen.stop(namespace.hub)
      connection.send(WireText.cancel(location.path, query: location.queryText))
    }
  }

  /// Signs the client out if its token is no longer valid.
  func endExpired() {
    let authentication = state.withLock { $0.authentication }
    guard let error = service.authenticator.end(of: authentication) else { return }
    let isSame = state.withLock { state in
      guard state.authentication == authentication, !state.isFinished else { return false }
      state.authentication = .anonymous
      state.authenticationCount += 1
      return true
    }
    guard isSame else { return }
    connection.send(WireText.revoked(status: error.tokenStatus, error.text))
    reauthorize()
  }
}

extension RESTError {
  /// The status of a refused token.
  fileprivate var tokenStatus: String {
    self == .expiredToken
      ? "expired_token" : self == .permissionDenied ? "permission_denied" : "invalid_token"
  }
}
