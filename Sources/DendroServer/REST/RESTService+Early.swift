import DendroProtocol

// What is refused before the body of a request is read.

extension RESTService {
  /// Why a request is refused whatever its body says; nil if that has to be read.
  ///
  /// A body takes memory and time. One whose sender is not who it says, or may do nothing, gets neither.
  func refusalBeforeBody(_ exchange: Exchange) -> RESTError? {
    do throws(RESTError) {
      let request = try RESTRequest(
        method: exchange.method, target: exchange.target, headers: exchange.headers)
      let identity = try authenticator.authentication(of: request.credentials).identity
      return isAdmitted(identity, for: request) ? nil : .permissionDenied
    } catch {
      return error
    }
  }

  /// Whether data could make the authorizer allow the request.
  private func isAdmitted(_ identity: Identity, for request: RESTRequest) -> Bool {
    switch request.resource {
    case .settings, .databases: return identity.isAdministrator
    case .status: return true
    case .data, .priority: break
    }
    return switch authorizer {
    case is LockedAuthorizer: false
    case is AdministratorsAuthorizer: identity.isAdministrator
    case is UsersAuthorizer: identity != .anonymous
    default: true
    }
  }
}
