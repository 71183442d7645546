import DendroTree

/// What a client has of a listen's value before the listen begins.
enum KnownValue: Sendable {
  /// All of it, as it was at one moment.
  case all(Node)
  /// All but what later writes have changed.
  case outdated(OutdatedValue)
}
