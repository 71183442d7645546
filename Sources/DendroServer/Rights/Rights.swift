import DendroEngine
import DendroProtocol
import DendroRules
import DendroTree

/// Who may do what in one database: administrators whatever the server's authorizer allows them; everybody else what the
/// rules allow, if there are some and the authorizer yields to them, and otherwise what it allows.
final class Rights: Sendable {
  let authorizer: any Authorizer
  let namespace: Namespace
  /// Rules for all databases; nil if each has its own.
  let common: (any RuleSource)?

  init(authorizer: any Authorizer, namespace: Namespace, common: (any RuleSource)?) {
    self.authorizer = authorizer
    self.namespace = namespace
    self.common = common
  }

  /// The rules in force; nil if there are none.
  var rules: RuleSet? {
    guard authorizer.yieldsToRules else { return nil }
    return common?.current ?? namespace.settings.rules
  }

  /// The rules that decide about a client; nil if the authorizer does.
  func rules(for identity: Identity) -> RuleSet? { identity.isAdministrator ? nil : rules }

  // MARK: Reading

  /// Judges a reading of a state.
  ///
  /// - Parameters:
  ///   - query: nil for a plain read.
  ///   - wantsTrace: whether the verdict says how it came about.
  func verdict(
    reading path: Path, _ query: QueryParameters?, by identity: Identity,
    on pinned: PinnedHead, wantsTrace: Bool = false
  ) -> AuthorizationVerdict {
    RequestedRead(path: path, query: query, identity: identity, wantsTrace: wantsTrace).verdict(
      of: authorizer, rules, in: namespace.name, on: pinned.node, time: pinned.time,
      RequestState(namespace.database) {
        RequestState.Pinned(head: pinned.node, time: pinned.time) { pinned.node.node }
      })
  }

  // MARK: Writing

  /// What is done with a write that a client asks for.
  enum Admission {
    case refused(AuthorizationVerdict)
    /// Everybody may make it, whatever the data is.
    case free
    /// It is judged on the state to which it is admitted.
    case judged(RequestedWrite)
  }

  /// Judges a write as far as that can be done without the data.
  ///
  /// - Parameters:
  ///   - path: below which all of the write is.
  ///   - alsoReads: whether the client learns what is at the path.
  func admission(
    of write: EncodedWrite, _ locations: @autoclosure () -> [RuleRequest.Location], at path: Path,
    by identity: Identity, alsoReads: Bool = false, wantsTrace: Bool = false
  ) -> Admission {
    let isJudged = rules(for: identity) != nil
    if !isJudged, authorizer.isOpen, identity == .anonymous { return .free }
    let judge = RequestedWrite(
      self, locations(), write, at: path, by: identity, wantsTrace: wantsTrace, alsoReads: alsoReads
    )
    if isJudged { return .judged(judge) }
    let (verdict, wasLookedAt) = judge.ask { [namespace] in
      let pinned = namespace.engine.pin()
      return RequestState.Pinned(head: pinned.node, time: pinned.time) {
        () throws(EngineError) in try pinned.node.applying(write, time: pinned.time)
      }
    }
    guard verdict.decision == .allow else { return .refused(verdict) }
    return wasLookedAt ? .judged(judge) : .free
  }
}

extension Rights {
  /// Whether a client that has not signed in can do nothing.
  var needsUser: Bool {
    if rules != nil { return false }
    let entry = AuthorizationRequest.Entry(RuleRequest.Location(.root))
    return !authorizer.mayAllow(.read(RuleQuery()), at: .root, in: namespace.name, .anonymous)
      && !authorizer.mayAllow(.write([entry]), at: .root, in: namespace.name, .anonymous)
  }

  /// Judges a write on a state to which it is not admitted now.
  func verdict(
    writing write: EncodedWrite, _ locations: [RuleRequest.Location], at path: Path,
    by identity: Identity, on pinned: PinnedHead
  ) -> AuthorizationVerdict {
    switch admission(of: write, locations, at: path, by: identity) {
    case .refused(let verdict): return verdict
    case .free: return .allow
    case .judged(let judge):
      let state = JudgedState(pinned.node, write, time: pinned.time)
      let judgement = try? pinned.node.reading { _, _ in
        try pinned.node.load(for: write)
        return judge.judge(state)
      }
      return judgement.map { _ in judge.verdict } ?? .deny
    }
  }
}

extension Authorizer {
  /// Whether a reading or writing may be allowed, as far as that can be said without data.
  func mayAllow(
    _ operation: AuthorizationRequest.Operation, at path: Path, in namespace: String,
    _ identity: Identity
  ) -> Bool {
    let state = RequestState.unknown()
    let request = AuthorizationRequest(
      operation, at: path, in: namespace, by: identity, on: state)
    return decide(request).decision == .allow || state.wasLookedAt
  }

  /// Whether a client may do something beside reading and writing data.
  func allows(
    _ management: AuthorizationRequest.Management, in namespace: String = "", _ identity: Identity
  ) -> Bool {
    let request = AuthorizationRequest(
      .manage(management), at: .root, in: namespace, by: identity, on: .none)
    return decide(request).decision == .allow
  }
}
