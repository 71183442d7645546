import DendroEngine
import DendroProtocol
import DendroRules
import DendroTree
import Dispatch

/// What is written when a client leaves: of its operations those that are allowed then, each judged as the one who has
/// registered it.
struct LastWrite: Sendable {
  private let rights: Rights
  private let parts: [Part]
  /// What it changes in the second root.
  private let removal: EncodedWrite?
  /// For what may wait for the disk.
  private let queue: DispatchQueue

  /// Makes a write of the data and the second root. The last argument gets whether it was denied.
  typealias Submission =
    @Sendable (
      EncodedWrite, (any WriteJudge)?, _ wasDenied: @escaping @Sendable (Bool) -> Void
    ) -> Void

  /// One operation.
  private struct Part {
    let draft: Draft
    let path: Path
    /// Nil if it is not known who has registered it: then it was judged at that time only.
    let identity: Identity?
  }

  /// - Parameters:
  ///   - draft: all operations, as one update of the root.
  ///   - removal: what it changes in the second root.
  ///   - identity: who has registered what is at a location.
  init(
    _ draft: Draft?, _ rights: Rights, removal: EncodedWrite?, on queue: DispatchQueue,
    identity: (Path) -> Identity?
  ) {
    self.rights = rights
    self.queue = queue
    self.removal = removal
    parts = (draft?.parts ?? []).map { path, draft in
      Part(draft: draft, path: path, identity: identity(path))
    }
  }

  /// How often what is allowed is judged together, if other writes come between, before each operation is one write.
  private static let attemptMax = 3

  /// Makes the write: all operations at once, since one may be allowed only together with another one. If they are not,
  /// those that are allowed by themselves; and if rules allow these only one by one, they are so many writes.
  func make(_ submit: @escaping Submission) { make(attempt: 1, submit) }

  private func make(attempt: Int, _ submit: @escaping Submission) {
    let pinned = rights.namespace.engine.pin()
    let chosen =
      areAllowedTogether(on: pinned) ? parts : parts.filter { isAllowed($0, on: pinned) }
    guard attempt <= Self.attemptMax else {
      for part in chosen {
        let (admitted, judge) = admission(of: [part])
        if !admitted.isEmpty { submit(EncodedWrite(part.draft), judge, { _ in }) }
      }
      if let removal { submit(EncodedWrite(nil, system: removal), nil) { _ in } }
      return
    }
    let (admitted, judge) = admission(of: chosen)
    let draft = Draft(parts: admitted.map(\.draft))
    if draft == nil, removal == nil { return }
    let write = EncodedWrite(draft.map { EncodedWrite($0) }, system: removal)
    submit(write, judge) { isDenied in
      guard isDenied else { return }
      // Not in a completion: what is judged may have to be read.
      queue.async { make(attempt: attempt + 1, submit) }
    }
  }

  private func areAllowedTogether(on pinned: PinnedHead) -> Bool {
    let (admitted, judge) = admission(of: parts)
    guard admitted.count == parts.count, parts.count > 1, let judge,
      let draft = Draft(parts: parts.map(\.draft))
    else { return false }
    let write = EncodedWrite(draft)
    let judgement = try? pinned.node.reading { _, _ in
      try pinned.node.load(for: write)
      return judge.judge(JudgedState(pinned.node, write, time: pinned.time))
    }
    return judgement?.isAllowed ?? false
  }

  private func isAllowed(_ part: Part, on pinned: PinnedHead) -> Bool {
    guard let identity = part.identity else { return true }
    return rights.verdict(
      writing: EncodedWrite(part.draft), part.draft.locations, at: part.path, by: identity,
      on: pinned
    ).decision == .allow
  }

  /// Asks for the rights to make the parts.
  ///
  /// - Returns: the parts that were not refused at once, and the judge that judges all of them on one state; nil if no part has
  ///   to be judged.
  private func admission(of parts: [Part]) -> ([Part], (any WriteJudge)?) {
    var admitted: [Part] = []
    var judges: [RequestedWrite] = []
    for part in parts {
      if let identity = part.identity {
        let admission = rights.admission(
          of: EncodedWrite(part.draft), part.draft.locations, at: part.path, by: identity)
        switch admission {
        case .refused: continue
        case .free: break
        case .judged(let judge): judges.append(judge)
        }
      }
      admitted.append(part)
    }
    // What is judged is passed on to no other server, which may make the last write itself.
    let isFree = judges.isEmpty && !rights.namespace.isShared
    return (admitted, isFree ? nil : JointJudge(judges))
  }
}

/// Allows a write if all of its parts are allowed.
private final class JointJudge: WriteJudge {
  private let judges: [RequestedWrite]

  init(_ judges: [RequestedWrite]) { self.judges = judges }

  /// A client may have registered many.
  private var areFew: Bool { judges.count <= 16 }

  var isBounded: Bool { areFew && judges.allSatisfy(\.isBounded) }

  var comparesQuickly: Bool { areFew && judges.allSatisfy(\.comparesQuickly) }

  var isCurrent: Bool { judges.allSatisfy(\.isCurrent) }

  func judge(_ state: JudgedState) -> Judgement {
    // All of them see the same tree after the write, whose size may be that of all of them.
    let state = judges.count > 1 ? state.whole() : state
    let judgements = judges.map { $0.judge(state) }
    let hold = judgements.compactMap {
      judgement -> (@Sendable (Node, () -> Node) -> Bool)? in
      if case .wherever(let hold) = judgement.validity { hold } else { nil }
    }
    let isOnlyThere = judgements.contains {
      if case .onlyThere = $0.validity { true } else { false }
    }
    return Judgement(
      isAllowed: judgements.allSatisfy(\.isAllowed),
      isOnlyThere
        ? .onlyThere
        : .wherever { before, after in
          var made: Node?
          func once() -> Node {
            if let made { return made }
            let node = after()
            made = node
            return node
          }
          return hold.allSatisfy { $0(before, once) }
        },
      dependsOnTime: judgements.contains(where: \.dependsOnTime))
  }
}

extension Draft {
  /// The entries of an update of the root, each as one of its own with its server values.
  ///
  /// - Complexity: O(entries and server values).
  var parts: [(path: Path, draft: Draft)] {
    guard case .update(let base, let entries) = write else { return [(write.path, self)] }
    let places = Set(entries.map(\.path))
    // At most 32 steps down for each, whatever the number of entries.
    let serverValues = Dictionary(grouping: deferred) { item in
      (0...item.path.count).lazy.map(item.path.prefix).first(where: places.contains)
    }
    return entries.map { entry in
      let values = (serverValues[entry.path] ?? []).filter { item in
        // A value and a priority of one place are two entries.
        if case .setPriority = entry.action { return item.isPriority && item.path == entry.path }
        return true
      }
      return (base.appending(entry.path), Draft(.update(base, [entry]), deferred: values))
    }
  }

  /// Puts updates of one base together; nil if there are none.
  init?(parts: [Draft]) {
    var base: Path?
    var entries: [Write.Entry] = []
    var deferred: [Deferred] = []
    for part in parts {
      guard case .update(let path, let own) = part.write else { continue }
      base = path
      entries += own
      deferred += part.deferred
    }
    guard let base else { return nil }
    self.init(.update(base, entries), deferred: deferred)
  }
}
