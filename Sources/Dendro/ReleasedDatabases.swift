import DendroEngine
import DendroTree
import Dispatch
import Synchronization

/// Closes databases whose last reference was released without `close()`, each on a thread of its own, since
/// closing waits for the disk and any thread may release the last reference. Opening a locked directory
/// waits for them.
enum ReleasedDatabases {
  private struct State {
    var closing: [ObjectIdentifier: DispatchGroup] = [:]
    var closedCount = 0
  }

  private static let state = Mutex(State())

  /// Writes the registered operations and closes the engine.
  static func close(_ engine: Engine, _ connection: Connection) {
    let done = DispatchGroup()
    done.enter()
    state.withLock { $0.closing[ObjectIdentifier(done)] = done }
    BackgroundThread.start(.closing) {
      // Writes without a completion of their own report their failures to the error handler.
      try? engine.close(writing: connection.end(engine).map { EncodedWrite($0) })
      state.withLock { state in
        state.closing[ObjectIdentifier(done)] = nil
        state.closedCount += 1
      }
      done.leave()
    }
  }

  /// How many of them are closed.
  static var closedCount: Int { state.withLock { $0.closedCount } }

  /// Waits until every database is closed that was released before the call.
  ///
  /// - Parameter count: `closedCount` before a directory was found locked.
  /// - Returns: whether a database was closed since then, so that the directory may be free now.
  static func wait(since count: Int) -> Bool {
    let (groups, isFound) = state.withLock { state in
      (Array(state.closing.values), state.closedCount != count || !state.closing.isEmpty)
    }
    for group in groups { group.wait() }
    return isFound
  }
}
