import DendroEngine
import Synchronization

/// A database that stays open between the verbs of a shell: verbs that read take it in place of opening theirs.
///
/// Its states are those of the files: it is read again before each use, as far as another process or a verb has
/// written since.
final class SharedEngine: Sendable {
  private struct State {
    var path: String?
    var engine: Engine?
  }

  private static let state = Mutex(State())

  /// From now on the database at `path` is shared; nil for none.
  static func share(_ path: String?) {
    release()
    state.withLock { $0.path = path }
  }

  /// Closes the database; it is opened again when it is used. A writer that removes files does not do so
  /// while a reader has them.
  static func release() {
    let engine = state.withLock { state in
      defer { state.engine = nil }
      return state.engine
    }
    try? engine?.close()
  }

  /// The engine for a path; nil if it is not shared.
  static func engine(for path: String) throws -> Engine? {
    let (isShared, open) = state.withLock { ($0.path == path, $0.engine) }
    guard isShared else { return nil }
    if let open {
      do {
        _ = try open.refresh()
        return open
      } catch {
        // Another database may stand there now.
        release()
      }
    }
    let progress = Progress("opening")
    let engine = try Engine.open(at: path, mode: .readOnly, progress: progress.recovery)
    state.withLock { $0.engine = engine }
    return engine
  }
}
