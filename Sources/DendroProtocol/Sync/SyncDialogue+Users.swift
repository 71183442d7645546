import DendroTree

// A write is sent with the rights of the user who has made it. Those of other users wait: they are not sent, do not show, and
// nothing waits for them.

extension SyncDialogue {
  /// Makes and sends writes as another user from now on.
  package mutating func change(user new: SyncUser) -> [Effect] {
    if new == user { return [] }
    let old = user
    user = new
    var effects = endAttempts(besides: sentWrites)
    if old == .unknown {
      // That was this user, as it turns out.
      for number in writes.keys { writes[number]?.user = new }
      effects.append(.owned(writes: writes.keys.sorted(), new))
    } else {
      for (number, write) in writes.sorted(by: { $0.key > $1.key }) {
        waitingWrites[number] = write
        effects += changed(tree.answered(number: number, isAccepted: false))
      }
      writes = [:]
    }
    return effects + resume() + sendWrites()
  }

  /// Has the writes of the present user be pending, which have waited.
  private mutating func resume() -> [Effect] {
    var effects: [Effect] = []
    let own = waitingWrites.filter { $0.value.user == user }.keys.sorted()
    for number in own {
      guard let waiting = waitingWrites.removeValue(forKey: number) else { continue }
      let estimate = waiting.isSent ? waiting.estimate : nil
      let write = SyncWrite(waiting.draft, time: waiting.time, over: tree, estimate: estimate)
      effects += changed(tree.write(write.pending, number: number))
      writes[number] = waiting
      firstWrite = min(firstWrite, number)
    }
    return effects
  }

  /// Adds a write that an earlier run has kept. Called before a user signs in.
  ///
  /// - Parameters:
  ///   - write: as it was kept.
  ///   - number: above those of the writes before it.
  package mutating func restore(_ write: OutgoingWrite, number: Int) {
    lastWrite = number
    waitingWrites[number] = write
  }

  /// Has the writes that were restored be pending, as far as they are the present user's.
  package mutating func resumeRestored() { _ = resume() }

  /// Whether a write of the present user with this number or a lower one has no answer.
  package mutating func isWaiting(upTo number: Int) -> Bool {
    lowestWrite() <= number
  }

  /// None of the present user's writes without an answer has a lower number.
  mutating func lowestWrite() -> Int {
    while firstWrite <= lastWrite, writes[firstWrite] == nil { firstWrite += 1 }
    return firstWrite
  }
}
