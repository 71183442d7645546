import DendroEngine

/// What an acknowledgement promises: a completion block without an error, or an `await` that returns.
///
/// | value | a write is acknowledged once | a process crash takes | a power loss takes |
/// | --- | --- | --- | --- |
/// | ``everyCommit`` | the disk was told to keep it | nothing acknowledged | nothing acknowledged |
/// | ``interval(_:)`` | the operating system has it | nothing acknowledged | at most the writes of the last interval |
/// | ``none`` | the operating system has it | nothing acknowledged | whatever the system had not written yet |
///
/// Under the weaker two, `synchronize()` is the barrier.
public enum Durability: Hashable, Sendable {
  /// Every write is synchronized before it is acknowledged; writers at the same time share one
  /// synchronize. The default.
  case everyCommit
  /// Synchronized at least this often while there are writes. At least a millisecond.
  case interval(Duration)
  /// Synchronized when the database is closed, checkpointed or asked to.
  case none

  var engineValue: DendroEngine.Durability {
    switch self {
    case .everyCommit: .everyCommit
    case .interval(let interval): .interval(max(interval, .milliseconds(1)))
    case .none: .none
    }
  }
}
