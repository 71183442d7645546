import DendroStorage
import Synchronization

/// Wakes tasks that wait for writes to become durable: followers of the log. Any task may wait; the
/// thread that has the turn calls `advance`.
final class DurableSignal: Sendable {
  private struct State {
    var waiters:
      [UInt64: (lsn: LogSequenceNumber, continuation: CheckedContinuation<Bool, Never>)] = [:]
    var lastID: UInt64 = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let waiterCount = Atomic<Int>(0)

  /// Whether `advance` has anything to do. Read it after the new durable LSN is visible to `durable`: then
  /// a waiter is either counted here or sees that LSN itself.
  var hasWaiters: Bool { waiterCount.load(ordering: .acquiring) > 0 }

  /// Waits until a later write than `lsn` is durable.
  ///
  /// - Parameters:
  ///   - lsn: the write to wait behind.
  ///   - durable: returns the last durable write at the time of the call.
  /// - Returns: false if the task was cancelled or the signal closed.
  func wait(behind lsn: LogSequenceNumber, durable: @Sendable () -> LogSequenceNumber) async
    -> Bool
  {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isClosed = state.withLock { state in
          if state.isClosed { return true }
          state.waiters[id] = (lsn, continuation)
          waiterCount.wrappingAdd(1, ordering: .releasing)
          return false
        }
        if isClosed { return continuation.resume(returning: false) }
        // `advance` did not see this waiter if it was called before the registration.
        if durable() > lsn { resume(id, true) }
        if Task.isCancelled { resume(id, false) }
      }
    } onCancel: {
      resume(id, false)
    }
  }

  /// Wakes the waiters for which `durable` is far enough.
  func advance(to durable: LogSequenceNumber) {
    let ids = state.withLock { state in
      state.waiters.filter { $0.value.lsn < durable }.map(\.key)
    }
    for id in ids { resume(id, true) }
  }

  /// Wakes all waiters, and ends later waits at once.
  func close() {
    let ids = state.withLock { state in
      state.isClosed = true
      return Array(state.waiters.keys)
    }
    for id in ids { resume(id, false) }
  }

  /// Resumes a waiter if it still waits, without a lock, since its task may run at once.
  private func resume(_ id: UInt64, _ result: Bool) {
    let waiter = state.withLock { state in
      let waiter = state.waiters.removeValue(forKey: id)
      if waiter != nil { waiterCount.wrappingSubtract(1, ordering: .releasing) }
      return waiter
    }
    waiter?.continuation.resume(returning: result)
  }
}
