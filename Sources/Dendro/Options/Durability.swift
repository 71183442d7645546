import DendroEngine

extension Database {
  /// What an acknowledgement promises: a completion block without an error, or an `await` that returns.
  ///
  /// What a process crash and a power loss can take under each value stands below. Under all
  /// but ``everyCommit``, `synchronize()` is the barrier.
  public enum Durability: Hashable, Sendable {
    /// Every write is synchronized before it is acknowledged; writers at the same time share one
    /// synchronize. The default.
    case everyCommit
    /// Synchronized at least this often while there are writes. At least a millisecond.
    case interval(Duration)
    /// Synchronized when the database is closed, checkpointed or asked to.
    case onRequest

    /// The former name of ``onRequest``.
    @available(*, deprecated, renamed: "onRequest", message: "Optional.none shadows this name")
    public static var none: Durability { .onRequest }

    var engineValue: DendroEngine.Durability {
      switch self {
      case .everyCommit: .everyCommit
      case .interval(let interval): .interval(max(interval, .milliseconds(1)))
      case .onRequest: .none
      }
    }
  }
}
