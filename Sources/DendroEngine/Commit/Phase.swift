import DendroStorage

/// Whether the engine admits writes, and why not.
enum Phase {
  case running
  /// The disk had no room. Writes are refused until a probe finds some.
  case full(StorageError)
  /// The disk failed in a way that leaves its state unknown. Writes are refused until the next opening.
  case poisoned(EngineError)
  /// The engine shares its log, and does not lead or cannot reach that log. Writes are refused until it leads.
  case withheld(EngineError)
  /// `close()` was called: writes are refused, the last batch is still to be committed.
  case closing
  case closed

  var refusal: EngineError? {
    switch self {
    case .running: nil
    case .full(let error): .diskFull(error)
    case .poisoned(let error): error
    case .withheld(let error): error
    case .closing, .closed: .closed
    }
  }
}
