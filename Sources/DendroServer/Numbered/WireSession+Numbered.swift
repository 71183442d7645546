import DendroEngine
import DendroProtocol
import DendroTree
import Synchronization

// Writes that have numbers, each of which is made once however often it comes.

extension WireSession {
  /// - Returns: false if the messages of this client that follow have to wait.
  func write(
    _ draft: Draft, at path: Path, if condition: WriteCondition?, _ writeNumber: WriteNumber,
    _ digest: String, _ number: Int64
  ) -> Bool {
    // No hello has said that numbers count.
    guard let results = namespace.results else {
      return write(draft, at: path, if: condition, number)
    }
    let id = WriteResults.ID(opening: opening(of: writeNumber), number: writeNumber.number)
    if namespace.passesOn {
      let numbered = PassedOnWrite.Numbered(
        id: id, client: writeNumber.client, lowest: writeNumber.lowest, digest: digest,
        address: connection.account.address.text)
      return passOn(draft, at: path, if: condition, numbered, number)
    }
    switch results.begin(id, digest, lowest: writeNumber.lowest) {
    case .new: break
    case .running:
      // What the client has sent behind it is not made before it.
      let wasWaiting = state.withLock { state in
        defer { state.isWaiting = true }
        return state.isWaiting
      }
      let isRunning = results.wait(for: id) { [self] outcome in
        answerAgain(number, outcome)
        performWaiting()
      }
      if isRunning { return false }
      // It has ended meanwhile. If this message is one of those that have waited, others may still do.
      state.withLock { $0.isWaiting = wasWaiting }
      return write(draft, at: path, if: condition, writeNumber, digest, number)
    case .answered(let outcome):
      // What is there may not be durable yet.
      namespace.engine.submitSoon(.nothing) { [self] result in
        switch result {
        case .success: answerAgain(number, outcome)
        case .failure(let error): answerAgain(number, WriteOutcome(error, in: namespace))
        }
      }
      return true
    case .other:
      answer(number, .otherNumber)
      return true
    }
    let now = systemMilliseconds()
    let address = connection.account.address.text
    let ended = { @Sendable [self] (outcome: WriteOutcome) in
      // A stranger whose writes are refused causes no writing to the disk.
      guard case .denied(let verdict) = outcome, identity != .anonymous, !verdict.isForSize else {
        return results.end(id, outcome)
      }
      let change = results.change(id, isMade: false, digest, from: address, now: now)
      namespace.engine.submitSoon(EncodedWrite(nil, system: change)) { _ in
        results.end(id, outcome)
      }
    }
    switch judged(draft, at: path, if: condition) {
    case .failure(let refusal):
      ended(refusal.outcome)
      answer(number, refusal.outcome)
      return true
    case .success(var judged):
      judged.system = results.change(id, isMade: true, digest, from: address, now: now)
      judged.origin = WriteOrigin(
        client: Array(writeNumber.client.utf8), number: UInt64(writeNumber.number))
      return write(judged, number, ended: ended)
    }
  }

  /// The opening of which a write is, which is mostly that of the write before.
  private func opening(of number: WriteNumber) -> WriteResults.Opening {
    state.withLock { state in
      let naming = OpeningName(
        client: number.client, incarnation: number.incarnation,
        authenticationCount: state.authenticationCount)
      if let last = state.lastOpening, last.name == naming { return last.opening }
      let opening = WriteResults.Opening(number, by: state.authentication.identity)
      state.lastOpening = (naming, opening)
      return opening
    }
  }

  /// How a client names an opening, which is that of the user who it is.
  struct OpeningName: Equatable {
    let client: String
    let incarnation: String
    let authenticationCount: Int
  }

  /// Answers a write that was sent before.
  private func answerAgain(_ number: Int64, _ outcome: WriteOutcome) {
    answerAfterEvents(number, outcome)
  }
}

extension AuthorizationVerdict {
  /// Whether it says that the write is too large, and nothing of who may make it.
  var isForSize: Bool { if case .tooLarge = decision { true } else { false } }
}
