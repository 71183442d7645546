import Dendro
import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

// Writes of one client that another server makes.

extension WireSession {
  /// So much of one client is on its way before the rest waits, so that others have their share.
  private static let passedCountMax = 256
  private static let passedByteCountMax = 1 << 20

  // MARK: Behind its own writes

  /// What waits until no more than so many of a client's writes are on their way.
  struct BehindWrites {
    let countMax: Int
    let since: ContinuousClock.Instant
    let body: @Sendable () -> Void
  }

  /// Notes that a write has got its answer, or gets none.
  func endWrite() { resume(writesUnderWay.subtract(1, ordering: .acquiringAndReleasing).newValue) }

  /// Calls `body` once no more writes than so many are on their way; the messages of this client that follow wait until it
  /// has called `performWaiting()`.
  ///
  /// Where several servers have the database, a client sees a write once all of them have it: what it asks for behind its own
  /// would be answered as if there were none.
  func behindWrites(downTo countMax: Int, _ body: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.isWaiting = true
      state.behindWrites = BehindWrites(countMax: countMax, since: .now, body: body)
    }
    // The last one may have ended before.
    resume(writesUnderWay.load(ordering: .acquiring))
  }

  /// Goes on with what has waited for too long, whatever has become of the writes. Called once a second.
  func stopWaitingForWrites() {
    let since = state.withLock { $0.behindWrites?.since }
    if let since, .now - since > Self.patience { resume(0) }
  }

  /// A client that has left reads nothing behind its writes.
  func endWaitingForWrites() { resume(0) }

  private static let patience = Duration.seconds(30)

  private func resume(_ count: Int) {
    let body = state.withLock { state -> (@Sendable () -> Void)? in
      guard let waiting = state.behindWrites, count <= waiting.countMax else { return nil }
      state.behindWrites = nil
      return waiting.body
    }
    guard let body else { return }
    let perform = { @Sendable [self] in
      if state.withLock({ $0.isEnded }) { performWaiting() } else { body() }
    }
    // Not on the thread that has ended the write, which has others to end.
    if namespace.isLoaded {
      namespace.messages.async(for: self, perform)
    } else {
      service.workers.async(execute: perform)
    }
  }

  // MARK: Writes

  /// Has the server that leads judge and make a write. What the client sends behind it is passed on behind it.
  ///
  /// - Returns: false if the messages of this client that follow have to wait, since so much of it is on its way.
  func passOn(
    _ draft: Draft, at path: Path, if condition: WriteCondition?,
    _ numbered: PassedOnWrite.Numbered?, _ number: Int64
  ) -> Bool {
    let write = EncodedWrite(draft)
    // The answer says whether the data has the hash.
    if condition != nil, let refusal = refusal(ofReading: path, nil) {
      answer(number, .failed(refusal))
      return true
    }
    var passed = PassedOnWrite(identity: identity, path: path, session: id)
    passed.alsoReads = condition != nil
    passed.wantsTrace = wantsTrace
    passed.numbered = numbered
    passed.condition = condition.map {
      PassedOnWrite.Condition(kind: .hash, isPriority: $0.isPriority, value: $0.hash)
    }
    let start = ContinuousClock.now
    let count = writesUnderWay.add(1, ordering: .relaxed).newValue
    let ownByteCount = write.logByteCount
    let byteCount = passedByteCount.add(ownByteCount, ordering: .relaxed).newValue
    let mayGoOn = namespace.pass(write, passed) { [self] in
      state.withLock { $0.isWaiting = true }
    } behind: { [self] in
      performWaiting()
    } completion: { [self] outcome, _ in
      passedByteCount.subtract(ownByteCount, ordering: .relaxed)
      service.figures.writes.observe(since: start)
      answerAfterEvents(number, outcome)
      endWrite()
    }
    guard mayGoOn else { return false }
    guard count >= Self.passedCountMax || byteCount >= Self.passedByteCountMax else { return true }
    behindWrites(downTo: Self.passedCountMax / 2) { [self] in performWaiting() }
    return false
  }
}
