import DendroEngine
import DendroProtocol
import DendroRules
import DendroTree
import Synchronization

/// A write that a client asks for, judged by the rights of its database.
final class RequestedWrite: WriteJudge {
  private let rights: Rights
  private let locations: [RuleRequest.Location]
  /// What an authorizer is shown of it. A transaction may write less, with the same effect.
  private let write: EncodedWrite
  private let path: Path
  private let identity: Identity
  private let wantsTrace: Bool
  /// Whether the client learns what was there, and so has to be allowed to read it.
  private let alsoReads: Bool
  /// Whether what rules see of it may be something else in another state.
  private let dependsOnState: Bool
  let last = LastVerdict()

  init(
    _ rights: Rights, _ locations: [RuleRequest.Location], _ write: EncodedWrite, at path: Path,
    by identity: Identity, wantsTrace: Bool = false, alsoReads: Bool = false
  ) {
    self.rights = rights
    self.locations = locations
    self.write = write
    self.path = path
    self.identity = identity
    self.wantsTrace = wantsTrace
    self.alsoReads = alsoReads
    dependsOnState = write.withView { $0.dependsOnState }
  }

  /// The last verdict.
  var verdict: AuthorizationVerdict { last.verdict }

  /// A verdict on a large write may take as many steps as that has locations.
  var isBounded: Bool { write.isShort && rights.rules(for: identity) != nil }

  var comparesQuickly: Bool { write.isShort }

  var isCurrent: Bool { rights.rules(for: identity) === last.rules }

  func judge(_ state: JudgedState) -> Judgement {
    if let set = rights.rules(for: identity) { return judge(state, set) }
    let (verdict, wasLookedAt) = ask {
      RequestState.Pinned(head: state.head, time: state.time) { state.after() }
    }
    last.note(verdict, by: nil)
    return Judgement(
      isAllowed: verdict.decision == .allow, wasLookedAt ? .onlyThere : .always,
      dependsOnTime: wasLookedAt)
  }

  // MARK: Rules

  private func judge(_ state: JudgedState, _ set: RuleSet) -> Judgement {
    guard let rules = set.rules else {
      last.note(.deny, by: set)
      return Judgement(isAllowed: false, .always)
    }
    var request = RuleRequest(locations, query: nil, auth: identity.auth, now: state.time)
    request.hasServerValues = dependsOnState
    var details: RuleDetails = wantsTrace ? .trace : []
    if state.wantsValidity { details.insert(.observations) }
    var ofLeaf: RuleVerdict?
    _ = state.withLeaf { leaf, path in
      ofLeaf = rules.decide(
        request, data: state.before, setting: leaf, at: path, details: details)
    }
    let verdict =
      ofLeaf
      ?? rules.decide(request, data: state.before, newData: state.after(), details: details)
    var reading: RuleVerdict?
    if alsoReads, verdict.isAllowed {
      let request = RuleRequest(
        [RuleRequest.Location(path)], query: RuleQuery(), auth: identity.auth, now: state.time)
      reading = rules.decide(request, data: state.before, details: details)
    }
    let isAllowed = verdict.isAllowed && reading?.isAllowed ?? true
    last.note(
      AuthorizationVerdict(
        isAllowed ? .allow : .deny, trace: (reading ?? verdict).trace?.description),
      by: set)
    guard state.wantsValidity else {
      return Judgement(isAllowed: isAllowed, .onlyThere, dependsOnTime: true)
    }
    let observations = [verdict.observations, reading?.observations].compactMap(\.self)
    return Judgement(
      isAllowed: isAllowed,
      .wherever { before, after in
        observations.allSatisfy {
          $0.hold(data: before, newData: $0.includeNewData ? after() : nil)
        }
      },
      dependsOnTime: write.facts.hasServerValues
        || observations.contains { $0.inputs.contains(.now) })
  }

  // MARK: An authorizer

  /// Asks the server's authorizer.
  ///
  /// - Returns: its verdict, and whether it has looked at the data.
  func ask(
    _ pin: @escaping @Sendable () -> RequestState.Pinned?
  ) -> (verdict: AuthorizationVerdict, wasLookedAt: Bool) {
    let state = RequestState(rights.namespace.database, pin)
    var verdict = decision(
      on: .write(locations.map { AuthorizationRequest.Entry($0) }), state)
    if alsoReads, verdict.decision == .allow {
      verdict = decision(on: .read(RuleQuery()), state)
    }
    if state.isUnreadable { verdict.decision = .deny }
    return (verdict, state.wasLookedAt)
  }

  private func decision(
    on operation: AuthorizationRequest.Operation, _ state: RequestState
  ) -> AuthorizationVerdict {
    rights.authorizer.decide(
      AuthorizationRequest(
        operation, at: path, in: rights.namespace.name, by: identity, on: state))
  }
}

/// The last verdict of a write, for its answer, which needs nothing else of what was judged.
final class LastVerdict: Sendable {
  private let state = Mutex((verdict: AuthorizationVerdict.deny, rules: RuleSet?.none))

  var verdict: AuthorizationVerdict { state.withLock { $0.verdict } }

  /// The rules that gave it; nil if an authorizer did.
  var rules: RuleSet? { state.withLock { $0.rules } }

  func note(_ verdict: AuthorizationVerdict, by rules: RuleSet?) {
    state.withLock { $0 = (verdict, rules) }
  }
}

extension Draft {
  /// The locations that get new values.
  var locations: [RuleRequest.Location] {
    switch write {
    case .set(let path, _), .remove(let path), .increment(let path, _):
      [RuleRequest.Location(path)]
    case .setPriority(let path, _): [RuleRequest.Location(path, isPriority: true)]
    case .update(let base, let entries):
      entries.map { entry in
        var isPriority = false
        if case .setPriority = entry.action { isPriority = true }
        return RuleRequest.Location(base.appending(entry.path), isPriority: isPriority)
      }
    }
  }
}
