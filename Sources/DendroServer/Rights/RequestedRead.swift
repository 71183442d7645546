import DendroEngine
import DendroProtocol
import DendroRules
import DendroTree

/// A reading that a client asks for, judged on one state of a database.
struct RequestedRead {
  let path: Path
  /// Nil for a plain read.
  let query: QueryParameters?
  let identity: Identity
  /// Whether the verdict says how it came about.
  var wantsTrace = false

  /// - Parameters:
  ///   - set: the rules in force; nil if there are none.
  ///   - name: of the database.
  ///   - head: its tree.
  ///   - time: in milliseconds since 1970.
  ///   - state: what the authorizer is shown of it.
  func verdict(
    of authorizer: any Authorizer, _ set: RuleSet?, in name: String, on head: HeadNode, time: Int64,
    _ state: @autoclosure () -> RequestState
  ) -> AuthorizationVerdict {
    var verdict: AuthorizationVerdict
    if !identity.isAdministrator, let set {
      verdict = self.verdict(of: set, on: head, time: time)
    } else {
      let state = state()
      let request = AuthorizationRequest(
        .read(RuleQuery(query)), at: path, in: name, by: identity, on: state)
      verdict = authorizer.decide(request)
      if state.isUnreadable { verdict.decision = .deny }
    }
    if verdict.decision == .allow, let missing = set?.rules?.missingIndex(for: query, at: path) {
      verdict.decision = .noIndex(missing.message)
    }
    return verdict
  }

  private func verdict(of set: RuleSet, on head: HeadNode, time: Int64) -> AuthorizationVerdict {
    guard let rules = set.rules else { return .deny }
    let request = RuleRequest(
      [RuleRequest.Location(path)], query: RuleQuery(query), auth: identity.auth, now: time)
    let verdict = try? head.reading { root, _ in
      rules.decide(request, data: root, details: wantsTrace ? .trace : [])
    }
    guard let verdict else { return .deny }
    return AuthorizationVerdict(
      verdict.isAllowed ? .allow : .deny, trace: verdict.trace?.description)
  }
}
