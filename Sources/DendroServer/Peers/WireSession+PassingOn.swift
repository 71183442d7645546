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

  /// Calls `body` once all writes so far have their answers. Where several servers have the database, a client sees a write
  /// once all of them have it: what it asks for behind its own would be answered as if there were none.
  func behindWrites(_ body: @escaping @Sendable () -> Void) {
    namespace.engine.submitSoon(.nothing) { [self] _ in
      if state.withLock({ $0.isEnded }) { performWaiting() } else { body() }
    }
  }

  /// Has the server that leads judge and make a write. What the client sends behind it is passed on behind it.
  ///
  /// - Returns: false if the messages of this client that follow have to wait, since so much of it is on its way.
  func passOn(
    _ draft: Draft, at path: Path, if condition: WriteCondition?,
    _ numbered: PassedOnWrite.Numbered?, _ number: Int64
  ) -> Bool {
    let write: EncodedWrite
    do throws(ValidationError) {
      write = try EncodedWrite(validating: draft)
    } catch {
      answer(number, WriteOutcome(.validation(error), in: namespace))
      return true
    }
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
    let byteCount = passedByteCount.add(write.logByteCount, ordering: .relaxed).newValue
    namespace.pass(write, passed) { [self] outcome, _ in
      writesUnderWay.subtract(1, ordering: .relaxed)
      passedByteCount.subtract(write.logByteCount, ordering: .relaxed)
      service.figures.writes.observe(since: start)
      afterEvents { $0.answer(number, outcome) }
    }
    guard count >= Self.passedCountMax || byteCount >= Self.passedByteCountMax else { return true }
    state.withLock { $0.isWaiting = true }
    behindWrites { [self] in performWaiting() }
    return false
  }
}
