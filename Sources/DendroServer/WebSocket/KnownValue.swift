import DendroTree

/// What a client has of a listen's value before the listen begins.
enum KnownValue: Sendable {
  /// All of it, as it was at one moment.
  case all(Node)
  /// The value after an earlier write. Later ones have changed it.
  case outdated(OutdatedValue)
}
