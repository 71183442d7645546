/// What is kept of the past beyond what opening needs: segments and checkpoints from which each state
/// in between can be rebuilt.
///
/// It is applied when a checkpoint is taken, and by whole files: what is kept is at least what is asked
/// for, but for `bytes`, where it is at most that.
package enum HistoryRetention: Hashable, Sendable {
  /// What opening needs: two checkpoints, and the log since the older one.
  case none
  /// Every write from now on.
  case all
  /// The states of so many milliseconds before now.
  case milliseconds(Int64)
  /// The states before so many of the last writes.
  case writes(UInt64)
  /// As many states as fit into so many bytes of files, beside those that opening needs.
  case bytes(UInt64)
}
