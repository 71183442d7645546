import DendroEngine
import DendroProtocol
import DendroTree

// Writes that have numbers, each of which is made once however often it comes.

extension WireSession {
  /// - Returns: false if the messages of this client that follow have to wait, since the disk is behind.
  func write(
    _ draft: Draft, at path: Path, _ writeNumber: WriteNumber, _ digest: String, _ number: Int64
  ) -> Bool {
    // No hello has said that numbers count.
    guard let results = namespace.results else {
      guard let judged = judged(draft, at: path, number) else { return true }
      return write(judged, number)
    }
    let id = WriteResults.ID(writeNumber, by: identity)
    switch results.begin(id, digest, then: { [self] in answer(number, $0) }) {
    case .new: break
    case .running: return true
    case .answered(let outcome):
      // What is there may not be durable yet.
      submit(.nothing) { [self] result in
        switch result {
        case .success: answer(number, outcome)
        case .failure(let error): answer(number, .failed(error))
        }
      }
      return true
    case .other:
      refuse(number, .badRequest("The number of the write is that of another one"))
      return true
    }
    let now = systemMilliseconds()
    let keepDenial = { @Sendable [self] in
      // A stranger whose writes are refused causes no writing to the disk.
      if identity == .anonymous { return results.end(id, .denied) }
      let change = results.change(id, isMade: false, digest, lowest: writeNumber.lowest, now: now)
      submit(EncodedWrite(nil, system: change)) { _ in results.end(id, .denied) }
    }
    var isDenied = false
    guard let judged = judged(draft, at: path, number, denied: { isDenied = true }) else {
      if isDenied {
        keepDenial()
      } else {
        // It can never be made.
        results.end(id, .denied)
      }
      return true
    }
    let change = results.change(id, isMade: true, digest, lowest: writeNumber.lowest, now: now)
    let write = EncodedWrite(
      judged.write, system: change,
      origin: WriteOrigin(
        client: Array(writeNumber.client.utf8), number: UInt64(writeNumber.number)))
    return self.write(JudgedDraft(write: write, judge: judged.judge), number) { error in
      switch error {
      case nil: results.end(id, .made)
      case .denied?: keepDenial()
      case let error?: results.end(id, .failed(error))
      }
    }
  }

  /// Submits a write for which no message waits, and does not wait for the disk.
  private func submit(_ write: EncodedWrite, _ completion: @escaping Completion) {
    let engine = namespace.engine
    if engine.submitAtOnce(write, completion: completion) { return }
    Task(executorPreference: service.executor) {
      await engine.submitSuspended(write, completion: completion)
    }
  }

  /// Answers a write that was sent before.
  private func answer(_ number: Int64, _ outcome: WriteResults.Outcome) {
    afterEvents { session in
      switch outcome {
      case .made: session.answer(number)
      case .denied: session.refuse(number, .deny)
      case .failed(let error): session.refuse(number, error)
      }
    }
  }
}
