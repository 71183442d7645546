import DendroStorage
import DendroTree
import Synchronization

// Admission for callers whose thread may not be blocked.

extension CommitPipeline {
  /// Admits or refuses a write, unless it has to wait.
  ///
  /// - Returns: false if it has to wait. Then nothing was done, and `completion` is not called.
  func submitAtOnce(
    _ write: EncodedWrite, judge: (any WriteJudge)?, completion: Completion?
  ) -> Bool {
    var waits = permittedWaits(judge)
    return settle(write, completion, &waits) == nil
  }

  /// Admits or refuses a write, and waits for that without blocking a thread.
  func submitSuspended(
    _ write: EncodedWrite, judge: (any WriteJudge)?, completion: Completion?
  ) async {
    var waits = permittedWaits(judge)
    while true {
      let hasStalled = waits.passesOn
      guard let pause = settle(write, completion, &waits) else { return }
      switch pause {
      case .disk:
        await stall.waitSuspended(isFirst: hasStalled)
        waits.passesOn = true
      case .transaction(let reservation):
        waitingWriterCount.add(1, ordering: .relaxed)
        waits.transaction = await reservation.wait()
        waitingWriterCount.subtract(1, ordering: .relaxed)
      case .secondRoot:
        do throws(EngineError) {
          try await addSecondRootSuspended()
        } catch {
          return report(error, completion)
        }
      }
    }
  }
}
