import DendroProtocol
import DendroRules
import DendroTree

// What is refused before the body of a request is read.

extension RESTService {
  /// Why a request is refused whatever its body says; nil if that has to be read.
  ///
  /// A body takes memory and time. One whose sender is not who it says, or may do nothing, gets neither.
  func refusalBeforeBody(_ exchange: Exchange) -> RESTError? {
    do throws(RESTError) {
      let target = try RequestTarget(exchange.target)
      if RulesCall.isMeant(by: target.path) {
        let credentials = Credentials(target, exchange.headers)
        let identity = try authenticator.authentication(of: credentials).identity
        return mayInspect(identity) ? nil : .permissionDenied
      }
      let request = try RESTRequest(
        method: exchange.method, target: exchange.target, headers: exchange.headers)
      let identity = try authenticator.authentication(of: request.credentials).identity
      return isAdmitted(identity, for: request) ? nil : .permissionDenied
    } catch {
      return error
    }
  }

  /// Whether the request may turn out to be allowed. What depends on the data or on the body is not known yet.
  private func isAdmitted(_ identity: Identity, for request: RESTRequest) -> Bool {
    switch request.resource {
    case .settings, .databases:
      return identity.isAdministrator && authorizer.allows(.settings, identity)
    case .status: return true
    case .data(let path), .priority(let path):
      if !identity.isAdministrator, authorizer.yieldsToRules {
        if commonRules != nil { return true }
        // One that is not open may have rules.
        guard let lease = namespaces.open(request.namespace), lease.namespace.settings.rules == nil
        else { return true }
      }
      return authorizer.mayAllow(
        .write([AuthorizationRequest.Entry(RuleRequest.Location(path))]), at: path,
        in: namespaces.name(of: request.namespace), identity)
    }
  }
}
