import Synchronization

/// The lock around `Admission`, which wakes the commit thread when there is work for it.
///
/// Held for the time of one write. A holder calls no user code and does not wait for the disk.
final class AdmissionLock: Sendable {
  private let admission: Mutex<Admission>
  /// Nil under inline execution.
  private let commitThread: BlockingExecutor?

  init(_ admission: consuming sending Admission, wakes commitThread: BlockingExecutor?) {
    self.admission = Mutex(admission)
    self.commitThread = commitThread
  }

  @inline(__always)
  func withLock<R: Sendable>(_ body: (inout Admission) -> R) -> R {
    let (result, wakes) = admission.withLock { admission -> (R, Bool) in
      let result = body(&admission)
      return (result, admission.wakesCommitThread())
    }
    if wakes { commitThread?.wake() }
    return result
  }

  /// Takes the lock without waking the commit thread: for the commit thread itself, which looks for work
  /// before it sleeps.
  @inline(__always)
  func withLockInCycle<R>(_ body: (inout Admission) -> R) -> R {
    admission.withLock { body(&$0) }
  }
}
