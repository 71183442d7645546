import DendroEngine
import DendroTree
import Dispatch
import Synchronization

/// Closes databases whose last reference was released without `close()`, each on a thread of its own, since
/// closing waits for the disk and any thread may release the last reference. Opening a locked directory
/// waits for them.
enum ReleasedDatabases {
  private static let closing = Mutex<[ObjectIdentifier: DispatchGroup]>([:])

  /// Writes the registered operations and closes the engine.
  static func close(_ engine: Engine, _ connection: Connection) {
    let done = DispatchGroup()
    done.enter()
    closing.withLock { $0[ObjectIdentifier(done)] = done }
    BackgroundThread.start(.closing) {
      // Writes without a completion of their own report their failures to the error handler.
      try? engine.close(writing: connection.end(engine))
      _ = closing.withLock { $0.removeValue(forKey: ObjectIdentifier(done)) }
      done.leave()
    }
  }

  /// Waits until every database is closed that was released before the call.
  ///
  /// - Returns: whether there was one.
  static func wait() -> Bool {
    let groups = closing.withLock { Array($0.values) }
    for group in groups { group.wait() }
    return !groups.isEmpty
  }
}
