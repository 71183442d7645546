package import DendroTree

/// A write of a client that its server has not answered.
package struct OutgoingWrite: Sendable {
  package var user: SyncUser
  /// Many writes may wait, and are passed on: this is one reference.
  private let content: Content
  /// A time before it was sent first, by the server's clock, in milliseconds since 1970; nil if it was not sent.
  package var sentTime: Int64?
  /// Whether it waits until the application decides.
  package var isHeld: Bool

  package init(
    user: SyncUser, draft: Draft, estimate: Write? = nil, time: Int64, incarnation: String?,
    sentTime: Int64? = nil,
    isHeld: Bool = false
  ) {
    self.user = user
    content = Content(draft, estimate, time: time, incarnation)
    self.sentTime = sentTime
    self.isHeld = isHeld
  }

  /// What does not change.
  private final class Content: Sendable {
    let draft: Draft
    let estimate: Write?
    let time: Int64
    let incarnation: String?

    init(_ draft: Draft, _ estimate: Write?, time: Int64, _ incarnation: String?) {
      self.draft = draft
      self.estimate = estimate
      self.time = time
      self.incarnation = incarnation
    }
  }

  package var draft: Draft { content.draft }
  /// What listeners see of it until it is answered, if it adds to what is there: what that made when it was written. What is
  /// known later may have it already.
  package var estimate: Write? { content.estimate }
  /// When it was made, by the server's clock as far as it was known, in milliseconds since 1970.
  package var time: Int64 { content.time }
  /// The opening in which it was made; nil if it has no number.
  package var incarnation: String? { content.incarnation }

  /// Whether the server may have it.
  package var isSent: Bool { sentTime != nil }

  /// Whether it makes something else if it is made twice.
  var adds: Bool { draft.adds }
}

extension Draft {
  /// Whether what it makes depends on what is there.
  var adds: Bool {
    switch write {
    case .increment: return true
    case .update(_, let entries):
      if entries.contains(where: { if case .increment = $0.action { true } else { false } }) {
        return true
      }
    case .set, .remove, .setPriority: break
    }
    return deferred.contains { if case .increment = $0.value { true } else { false } }
  }
}

/// By which a server tells the writes of clients apart.
package struct WriteNumbering: Sendable {
  /// 32 hexadecimal digits, drawn once.
  package let client: String
  /// 16 hexadecimal digits, drawn at each opening.
  package let incarnation: String

  package init(client: String, incarnation: String) {
    self.client = client
    self.incarnation = incarnation
  }
}

/// What a server that makes numbered writes once has said last.
package struct KnownServer: Sendable, Equatable {
  package let branch: String
  package let lsn: UInt64
  /// When it was heard last, within an hour, by its clock, in milliseconds since 1970.
  package let time: Int64

  package init(branch: String, lsn: UInt64, time: Int64) {
    self.branch = branch
    self.lsn = lsn
    self.time = time
  }

  /// Whether a server has the history of which it has said this.
  func isKnown(to server: NumberedServer) -> Bool {
    branch == server.branch && lsn <= server.lsn
  }
}

extension NumberedServer {
  /// The server has what became of all numbered writes of the user that it got since.
  fileprivate func since(of user: SyncUser) -> Int64 {
    switch user {
    case .user, .administrator: since
    case .anonymous, .unknown: max(since, strangersSince)
    }
  }
}

extension SyncDialogue {
  /// The server has greeted. If it cannot tell what became of the writes that were sent, those that would count twice wait
  /// until the application decides; the others are sent again.
  mutating func meet(_ server: NumberedServer?, time: Int64) -> [Effect] {
    self.server = server
    tree.isOurServer = server != nil
    guard let server else { return endAttempts() }
    // The numbers of its writes are those of another history.
    if knownServer?.branch != server.branch { tree.forgetHeard() }
    var effects: [Effect] = []
    let isKnown = knownServer?.isKnown(to: server) == true
    if !isKnown || server.since(of: user) > knownServer?.time ?? 0 { effects += endAttempts() }
    for (number, write) in pendingWrites where !write.isHeld && write.adds {
      guard let sentTime = write.sentTime else { continue }
      if isKnown, server.since(of: write.user) <= sentTime { continue }
      writes[number]?.isHeld = true
      waitingWrites[number]?.isHeld = true
      effects.append(.held(write: number))
    }
    let known = KnownServer(branch: server.branch, lsn: server.lsn, time: time)
    knownServer = known
    effects.append(.met(known))
    return effects
  }

  /// The writes without an answer, with their numbers in order: of the present user, and of others.
  package var pendingWrites: [(number: Int, write: OutgoingWrite)] {
    writes.merging(waitingWrites) { own, _ in own }.sorted { $0.key < $1.key }
      .map { ($0.key, $0.value) }
  }

  /// Whether a write has a number.
  func isNumbered(_ number: Int) -> Bool {
    (writes[number] ?? waitingWrites[number])?.incarnation != nil
  }

  /// Sends a write that waits for the application's decision.
  package mutating func release(write number: Int) -> [Effect] {
    if waitingWrites[number] != nil {
      waitingWrites[number]?.isHeld = false
      return []
    }
    guard writes[number]?.isHeld == true else { return [] }
    writes[number]?.isHeld = false
    return send([.write(number)])
  }

  /// Gives up a write, which the server may have made if it was sent.
  package mutating func drop(write number: Int) -> [Effect] {
    let isOwn = writes.removeValue(forKey: number) != nil
    guard isOwn || waitingWrites.removeValue(forKey: number) != nil else { return [] }
    return changed(tree.answered(number: number, isAccepted: false))
      + [.answered(write: number, .canceled)]
  }
}
