import DendroStorage

/// Whether the engine admits writes, and why not.
enum Phase {
  case running
  /// The disk had no room. A probe decides when there is some.
  case full(StorageError)
  /// The disk refused in a way after which its state is unknown.
  case poisoned(EngineError)
  /// No write is admitted any more; the last cycle is still to come.
  case closing
  case closed

  var refusal: EngineError? {
    switch self {
    case .running: nil
    case .full(let error): .diskFull(error)
    case .poisoned(let error): error
    case .closing, .closed: .closed
    }
  }
}
