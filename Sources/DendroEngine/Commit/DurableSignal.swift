import DendroStorage
import Synchronization

/// Wakes tasks that wait for a write to become durable, without anybody looking again and again.
final class DurableSignal: Sendable {
  private struct State {
    var waiters:
      [UInt64: (lsn: LogSequenceNumber, continuation: CheckedContinuation<Bool, Never>)] = [:]
    var lastID: UInt64 = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let waiterCount = Atomic<Int>(0)

  /// Whether `advance` has anything to do: asked after the durable write was told to whoever asks for
  /// it, so that a waiter is either seen here or sees that write itself.
  var hasWaiters: Bool { waiterCount.load(ordering: .acquiring) > 0 }

  /// Waits until a write behind `lsn` is durable.
  ///
  /// - Parameters:
  ///   - lsn: a write.
  ///   - durable: the last durable write now.
  /// - Returns: false where the task was cancelled, or nothing becomes durable any more.
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
        // What came before the registration woke nobody.
        if durable() > lsn { resume(id, true) }
        if Task.isCancelled { resume(id, false) }
      }
    } onCancel: {
      resume(id, false)
    }
  }

  /// Wakes those for whom it is enough.
  func advance(to durable: LogSequenceNumber) {
    let ids = state.withLock { state in
      state.waiters.filter { $0.value.lsn < durable }.map(\.key)
    }
    for id in ids { resume(id, true) }
  }

  /// Wakes everybody; nobody waits any more.
  func close() {
    let ids = state.withLock { state in
      state.isClosed = true
      return Array(state.waiters.keys)
    }
    for id in ids { resume(id, false) }
  }

  /// No lock is held then: what it wakes may run at once.
  private func resume(_ id: UInt64, _ result: Bool) {
    let waiter = state.withLock { state in
      let waiter = state.waiters.removeValue(forKey: id)
      if waiter != nil { waiterCount.wrappingSubtract(1, ordering: .releasing) }
      return waiter
    }
    waiter?.continuation.resume(returning: result)
  }
}
