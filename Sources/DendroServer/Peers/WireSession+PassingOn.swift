import Dendro
import DendroEngine
import DendroProtocol
import DendroTree

// Writes of one client that another server makes.

extension WireSession {
  /// Has the server that leads judge and make a write. What the client sends behind it is passed on behind it.
  ///
  /// - Returns: true: no message of this client has to wait.
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
    var passed = PassedOnWrite(identity: identity, path: path)
    passed.alsoReads = condition != nil
    passed.wantsTrace = wantsTrace
    passed.numbered = numbered
    passed.condition = condition.map {
      PassedOnWrite.Condition(kind: .hash, isPriority: $0.isPriority, value: $0.hash)
    }
    let start = ContinuousClock.now
    namespace.pass(write, passed) { [self] outcome, _ in
      service.figures.writes.observe(since: start)
      afterEvents { $0.answer(number, outcome) }
    }
    return true
  }
}
