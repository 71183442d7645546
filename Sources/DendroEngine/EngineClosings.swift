import DendroPlatform
import DendroStorage
import Dispatch
import Synchronization

/// Engines of this process that were released without `close()` and still hold their directories.
///
/// Releasing an engine does not wait for its closing, since it may happen on the commit thread, which does
/// that. Opening the directory waits instead.
enum EngineClosings {
  private struct State {
    var count = 0
    var waiters: [DispatchSemaphore] = []
  }

  private static let state = Mutex(State())

  /// The number of openings that wait at this moment.
  static var waiterCount: Int { state.withLock { $0.waiters.count } }

  static func begin() { state.withLock { $0.count += 1 } }

  static func end() {
    let waiters = state.withLock { state -> [DispatchSemaphore] in
      state.count -= 1
      guard state.count == 0 else { return [] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.signal() }
  }

  /// Opens a directory; where this process holds it, again once the closings have ended.
  static func retry<R>(_ open: () throws(StorageError) -> R) throws(StorageError) -> R {
    do throws(StorageError) {
      return try open()
    } catch {
      guard case .locked(_, getpid()) = error, waitForAll() else { throw error }
    }
    return try open()
  }

  /// - Returns: whether there was anything to wait for.
  private static func waitForAll() -> Bool {
    let waiter = state.withLock { state -> DispatchSemaphore? in
      guard state.count > 0 else { return nil }
      let waiter = DispatchSemaphore(value: 0)
      state.waiters.append(waiter)
      return waiter
    }
    waiter?.wait()
    return waiter != nil
  }
}
