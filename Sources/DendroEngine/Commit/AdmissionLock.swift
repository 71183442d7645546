/// The lock around `Admission`. Once it is released, the commit thread is woken if there is work for it, and
/// the observer called if it asked for that.
///
/// Held for the time of one write. A holder calls no user code and does not wait for the disk.
final class AdmissionLock: Sendable {
  private let admission: BargingMutex<Admission>
  /// Nil under inline execution.
  private let commitThread: BlockingExecutor?

  init(_ admission: consuming sending Admission, wakes commitThread: BlockingExecutor?) {
    self.admission = BargingMutex(admission)
    self.commitThread = commitThread
  }

  @inline(__always)
  func withLock<R: Sendable>(_ body: (inout Admission) -> R) -> R {
    let (result, wakes, observer) = admission.withLock {
      admission -> (R, Bool, (any CommitObserver)?) in
      let result = body(&admission)
      return (result, admission.takeWakeUp(), admission.takeWaitingObserver())
    }
    if wakes { commitThread?.wake() }
    observer?.afterAdmission()
    return result
  }

  /// Takes the lock without waking the commit thread: for the thread that has the turn, or asks for it.
  @inline(__always)
  func withLockInTurn<R>(_ body: (inout Admission) -> R) -> R {
    let (result, observer) = admission.withLock { admission -> (R, (any CommitObserver)?) in
      let result = body(&admission)
      return (result, admission.takeWaitingObserver())
    }
    observer?.afterAdmission()
    return result
  }
}
