/// How much of the past is kept beyond what opening needs: segments and checkpoints from which each state in
/// between can be rebuilt.
///
/// It is applied when a checkpoint is taken, by whole files: at least the given states are kept; under
/// `bytes`, at most the given bytes.
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
