import DendroStorage
import DendroTree

// Older releases cannot read writes to the second root. They are in segments alone that say so, and a segment says so from
// its beginning: before the first such write a segment begins.

extension Admission {
  /// Whether the log takes writes to the second root.
  enum SecondRoot {
    case absent
    /// A segment that does is about to begin.
    case beginning
    /// Also of a database in memory.
    case present
  }

  /// Whether the log has to begin a segment for writes to the second root before it can take this one.
  func needsSecondRoot(for write: WriteView) -> Bool {
    guard secondRoot != .present, limits.isPersistent, case .running = phase else { return false }
    return write.extras != nil
  }

  /// Has the next turn begin a segment for writes to the second root.
  ///
  /// No segment begins behind one without writes, since the name of a segment is the number of its first one. So this
  /// adds a write that changes nothing.
  ///
  /// - Parameter completion: called once the segment has begun, or with the reason why not. It may also have to be asked
  ///   for again, since another caller's attempt has failed.
  mutating func addSecondRoot(now: Int64, _ completion: @escaping Completion) {
    switch secondRoot {
    case .present:
      batch.completions.append(.init(result: .success(nil), completion: completion))
      return
    case .beginning where batch.addsSecondRoot: break
    case .beginning:
      // The turn that has the batch before comes to its end first.
      batch.completions.append(.init(result: .success(nil), completion: completion))
      return
    case .absent:
      secondRoot = .beginning
      batch.addsSecondRoot = true
      lastLSN = lastLSN.next
      lastTime = nextTime(now)
      EncodedWrite.nothing.withView { write in
        _ = batch.encoder.append(write, extras: nil, lsn: lastLSN, time: lastTime)
      }
      batch.noteWrite(lastLSN, completion: { _ in })
    }
    batch.rolls.append(completion)
  }
}

extension CommitPipeline {
  /// Has the log take writes to the second root. Waits for the disk on the calling thread.
  func addSecondRoot() throws(EngineError) {
    try wait(requestSecondRoot)
  }

  /// `addSecondRoot()` without blocking a thread.
  func addSecondRootSuspended() async throws(EngineError) {
    try await waitSuspended(requestSecondRoot)
  }

  /// Submits a write once the log takes writes to the second root: for a completion, which may not wait. The head does not
  /// show it until then, and other writes may come before it, also those that the same completion submits next.
  func submitBehindSecondRoot(
    _ write: EncodedWrite, _ judge: (any WriteJudge)?, _ completion: Completion?
  ) {
    requestSecondRoot { [self] result in
      if case .failure(let error) = result { return report(error, completion) }
      submit(write, judge: judge, completion: completion)
    }
  }

  /// Has the log take writes to the second root.
  func requestSecondRoot(_ completion: @escaping Completion) {
    let now = clock.now()
    request(completion) { $0.addSecondRoot(now: now, completion) }
  }
}
