import DendroEngine
import DendroStorage
import DendroTree

extension Failure {
  /// Any error of a command, with the exit code that fits.
  init(describing error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as EngineError: self.init(error)
    case let error as StorageError: self.init(error)
    case let error as ValidationError: self.init(.badInput, error.message)
    case let error as JSONError: self.init(.badInput, "\(error)")
    default: self.init(.problem, "\(error)")
    }
  }

  init(_ error: EngineError) {
    switch error {
    case .storage(let error): self.init(error)
    case .poisoned(let cause, _):
      self.init(cause)
      message = "\(error)"
    case .diskFull: self.init(.inputOutput, "\(error)")
    case .memoryLimit, .closed, .readOnly, .forked, .overtaken, .tooManyWaiting:
      self.init(.unavailable, "\(error)")
    case .outOfHistory(.lsn, _), .noHistory: self.init(.problem, "\(error)")
    case .outOfHistory(.time(let time), let range):
      self.init(.problem, "the state at \(Format.time(time)) is not kept; \(range)")
    case .writeTooLarge, .validation, .noData: self.init(.badInput, "\(error)")
    }
  }

  init(_ error: StorageError) {
    switch error {
    case .io, .ownershipLost: self.init(.inputOutput, "\(error)")
    case .corrupt:
      self.init(.damaged, "\(error)", hint: "nothing was changed; 'dendro verify' says more")
    case .unsupportedVersion: self.init(.unavailable, "\(error)", hint: "a newer dendro reads it")
    case .locked: self.init(.locked, "\(error)", hint: "reading verbs work beside it")
    case .limit: self.init(.damaged, "\(error)")
    case .notFound, .unfinishedBackup: self.init(.problem, "\(error)")
    }
  }
}
