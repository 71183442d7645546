/// What a write does, by the number that stands for it in the log.
public enum WriteKind: UInt8, Sendable {
  case remove = 0
  case set = 1
  case increment = 2
  case setPriority = 3
  /// Only of a write; an entry of an update is one of the others.
  case update = 4
}
