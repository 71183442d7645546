package import DendroStorage
package import DendroTree

/// Why an operation of the engine failed.
package enum EngineError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The files could not be used; nothing was changed.
  case storage(StorageError)
  /// The engine was closed.
  case closed
  /// The disk failed in a way that leaves its state unknown: writes are refused until the database is
  /// reopened, reads still work. `notKnownDurable` are acknowledged writes that a power loss may take
  /// (only under a durability weaker than `everyCommit`).
  case poisoned(cause: StorageError, notKnownDurable: ClosedRange<LogSequenceNumber>?)
  /// The disk has no room. Try again: every refused write makes the engine look for room.
  case diskFull(StorageError)
  /// The tree is over the memory limit of the options.
  case memoryLimit(bytes: Int, limit: Int)
  /// One write is too large.
  case writeTooLarge(bytes: Int, limit: Int)
  /// The input breaks a rule of the data model.
  case validation(ValidationError)
  /// The database was opened for reading only.
  case readOnly
  /// This process is a fork of the one that opened the database.
  case forked
  /// The requested state is outside of those that can be read.
  case outOfHistory(HistoryPoint, HistoryBounds)
  /// A database in memory has no log to follow.
  case noHistory
  /// The location has no data, which a priority needs.
  case noData(Path)
  /// A transaction at the path has lost each of its runs to another write.
  case overtaken(Path, runs: Int)
  /// The write's judge does not allow it.
  case denied
  /// The engine shares its log, and another one leads or that log cannot be reached: writes are refused for now.
  case unavailable(String)
  /// The engine was closed before it was known whether the shared log has taken the write.
  case undecided(String)
  /// A transaction's block has made more writes than can be held until its end.
  case tooManyWaiting(limit: Int)

  /// Whether files are damaged or missing.
  package var isDamage: Bool {
    if case .storage(let error) = self { return error.isDamage }
    return false
  }

  package var description: String {
    switch self {
    case .storage(let error): return error.description
    case .closed: return "the database is closed"
    case .poisoned(let cause, let range):
      let doubt =
        range.map {
          "; writes \($0.lowerBound) to \($0.upperBound) are acknowledged but not known to be durable"
        } ?? ""
      return "writes are refused until the database is reopened: \(cause)\(doubt)"
    case .diskFull(let error): return "the disk is full: \(error)"
    case .memoryLimit(let bytes, let limit):
      return "the tree takes \(bytes) bytes of memory, the limit is \(limit)"
    case .writeTooLarge(let bytes, let limit):
      return "the write has \(bytes) bytes, the limit is \(limit)"
    case .validation(let error): return error.description
    case .readOnly: return "the database is open for reading only"
    case .forked: return "this process is a fork of the one that opened the database"
    case .outOfHistory(let point, let range): return "\(point) is not kept; \(range)"
    case .noHistory: return "a database in memory has no log to follow"
    case .noData(let path): return "there is no data at \(path) to give a priority to"
    case .overtaken(let path, let runs):
      return "other writes came between each of \(runs) runs of the transaction at \(path)"
    case .denied: return "the write is not allowed"
    case .unavailable(let reason): return reason
    case .undecided(let reason): return "it is not known whether the write was taken: \(reason)"
    case .tooManyWaiting(let limit):
      return "more than \(limit) operations wait for the end of a transaction's block"
    }
  }
}
