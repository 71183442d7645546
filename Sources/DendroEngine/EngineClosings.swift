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
    /// Closings that have ended so far.
    var endedCount = 0
    var waiters: [DispatchSemaphore] = []
  }

  private static let state = Mutex(State())

  /// The number of openings that wait at this moment.
  static var waiterCount: Int { state.withLock { $0.waiters.count } }

  /// The number of engines that are being closed at this moment.
  static var count: Int { state.withLock { $0.count } }

  static func begin() { state.withLock { $0.count += 1 } }

  static func end() {
    let waiters = state.withLock { state -> [DispatchSemaphore] in
      state.count -= 1
      state.endedCount += 1
      guard state.count == 0 else { return [] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.signal() }
  }

  /// Opens a directory; if this process holds it, again once the closings have ended.
  static func retry<R>(_ open: () throws(StorageError) -> R) throws(StorageError) -> R {
    let endedCount = state.withLock { $0.endedCount }
    do throws(StorageError) {
      return try open()
    } catch {
      guard case .locked(_, getpid()) = error, waitForAll(since: endedCount) else { throw error }
    }
    return try open()
  }

  /// - Parameter endedCount: the closings that had ended before the directory was found locked.
  /// - Returns: whether any has ended since.
  private static func waitForAll(since endedCount: Int) -> Bool {
    let (waiter, hasEnded) = state.withLock { state -> (DispatchSemaphore?, Bool) in
      guard state.count > 0 else { return (nil, state.endedCount != endedCount) }
      let waiter = DispatchSemaphore(value: 0)
      state.waiters.append(waiter)
      return (waiter, true)
    }
    waiter?.wait()
    return hasEnded
  }
}
