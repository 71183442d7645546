import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// What the replay of the log needs from the opening and from the checkpoints, which are read meanwhile. Each
/// thing is waited for once, until it is there or is known not to come.
final class VerificationInputs: Sendable {
  /// The trees of a checkpoint.
  struct Tree: Sendable {
    var lsn: LogSequenceNumber
    var roots: TreeRoots
  }

  private struct State {
    var headLSN: LogSequenceNumber??
    var oldest: Tree??
    var isCancelled = false
  }

  private let state = Mutex(State())
  private let headSignal = DispatchSemaphore(value: 0)
  private let oldestSignal = DispatchSemaphore(value: 0)

  /// The last write that opening gives; nil if it is refused.
  func headLSN() -> LogSequenceNumber? {
    headSignal.wait()
    return state.withLock { $0.headLSN ?? nil }
  }

  /// The oldest checkpoint that the log leads on from; nil if there is none. The caller has its tree to
  /// itself.
  func oldest() -> Tree? {
    oldestSignal.wait()
    return state.withLock { state in
      defer { state.oldest = .some(nil) }
      return state.oldest ?? nil
    }
  }

  func provide(headLSN: LogSequenceNumber?) {
    let isFirst = state.withLock { state in
      defer { if state.headLSN == nil { state.headLSN = .some(headLSN) } }
      return state.headLSN == nil
    }
    if isFirst { headSignal.signal() }
  }

  /// Only the first call has an effect.
  func provide(oldest: Tree?) {
    let isFirst = state.withLock { state in
      let isFirst = state.oldest == nil
      if isFirst { state.oldest = .some(oldest) }
      return isFirst
    }
    if isFirst { oldestSignal.signal() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Nothing more comes.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    provide(headLSN: nil)
    provide(oldest: nil)
  }
}
