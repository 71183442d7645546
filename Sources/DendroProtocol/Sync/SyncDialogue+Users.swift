package import DendroTree

// A write is sent with the rights of the user who has made it. Those of other users wait: they are not sent, do not show, and
// nothing waits for them.

extension SyncDialogue {
  /// A write that waits until its user signs in again.
  struct WaitingWrite: Sendable {
    var user: SyncUser
    let draft: Draft
    /// When it was made, by the server's clock.
    let time: Int64
  }

  /// Makes and sends writes as another user from now on.
  ///
  /// - Parameter time: the server's, in milliseconds since 1970, as far as the client knows it.
  package mutating func change(user new: SyncUser, time: Int64) -> [Effect] {
    if new == user { return [] }
    let old = user
    user = new
    var effects: [Effect] = []
    if old == .unknown {
      // That was this user, as it turns out.
      effects.append(.owned(writes: writes.keys.sorted(), new))
    } else {
      for (number, draft) in writes.sorted(by: { $0.key > $1.key }) {
        waitingWrites[number] = WaitingWrite(user: old, draft: draft, time: time)
        effects += tree.answered(number: number, isAccepted: false).map { .changed($0) }
      }
      writes = [:]
    }
    return effects + resume()
  }

  /// Has the writes of the present user be pending, which have waited.
  private mutating func resume() -> [Effect] {
    var effects: [Effect] = []
    let own = waitingWrites.filter { $0.value.user == user }
    // Over this connection, by this user, who has signed in again.
    let sent = Set(
      awaited.values.compactMap { if case .write(let number) = $0 { number } else { nil } })
    for (number, waiting) in own.sorted(by: { $0.key < $1.key }) {
      waitingWrites[number] = nil
      let write = SyncWrite(waiting.draft, time: waiting.time, over: tree)
      effects += tree.write(write.pending, number: number).map { .changed($0) }
      writes[number] = waiting.draft
      firstWrite = min(firstWrite, number)
      if !sent.contains(number) { effects += send(write: number) }
    }
    return effects
  }

  /// Adds a write of an earlier run, which was kept. Nobody has signed in yet.
  ///
  /// - Parameters:
  ///   - number: above those of the writes before it.
  ///   - maker: the user who has made it.
  ///   - time: when it was made, by the server's clock.
  package mutating func restore(_ draft: Draft, number: Int, by maker: SyncUser, time: Int64) {
    lastWrite = number
    waitingWrites[number] = WaitingWrite(user: maker, draft: draft, time: time)
  }

  /// Has the writes that were restored be pending, as far as they are the present user's.
  package mutating func resumeRestored() { _ = resume() }

  /// Whether a write of the present user with this number or a lower one has no answer.
  package mutating func isWaiting(upTo number: Int) -> Bool {
    while firstWrite <= lastWrite, writes[firstWrite] == nil { firstWrite += 1 }
    return firstWrite <= number
  }
}
