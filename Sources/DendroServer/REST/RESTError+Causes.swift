import Dendro
import DendroEngine
import DendroProtocol
import DendroStorage

extension RESTError {
  /// Why there is no database for a request.
  init(_ error: any Error) {
    switch error {
    case NamespaceError.unknown: self = .notFound
    case NamespaceError.tooMany(let limit):
      self.init(503, "The server has \(limit) databases in use, which is its limit.")
    case NamespaceError.tooManyExist(let limit):
      self.init(503, "The server has \(limit) databases, beyond which no request makes one.")
    case NamespaceError.noDirectory(let name):
      self.init(404, "\(name) is a file in the served directory, and no database.")
    case NamespaceError.noDescriptors:
      self.init(503, "The server has too many files open to open one more database.")
    case NamespaceError.ended: self.init(503, "The server is shutting down.")
    // It is the server that has asked for something impossible, as for the copy of another database.
    case let error as DatabaseError where error.code == .invalidArgument:
      self.init(503, "The database cannot be opened here.")
    case let error as DatabaseError: self.init(error)
    default: self = .internalError
    }
  }

  /// Why a database refused a reading or writing.
  init(_ error: DatabaseError) {
    switch error.code {
    case .permissionDenied: self = .permissionDenied
    case .invalidData, .invalidLeafValueType, .invalidPath, .invalidKey, .notWritable,
      .invalidQuery, .invalidArgument, .noData:
      self = .badRequest("Invalid data; \(error.message)")
    case .tooLarge: self = .writeTooLarge
    case .closed: self.init(503, "The database is closed.")
    case .maxRetry: self.init(503, "Other writes came between; try again.")
    case .diskFull: self.init(503, "The disk of the database is full.")
    case .poisoned: self.init(503, Self.sentence(poisonedBy: error.cause))
    case .locked: self.init(503, "The database is open in another process.")
    case .ownershipLost: self.init(503, "Another process has the database.")
    case .readOnly: self.init(503, "The database is open for reading only.")
    case .memoryLimit: self.init(503, "The database is at its limit of memory.")
    case .unavailable: self.init(503, Self.sentence(unavailable: error))
    case .pending: self = .outcomeUnknown
    case .corrupt where error.isSetBack:
      self.init(503, "PostgreSQL was set back, and an operator has to decide what counts.")
    case .corrupt: self.init(500, Losses.sentence)
    case .unsupportedFormat: self.init(500, "The database is of a newer version.")
    case .inputOutput: self.init(500, "The system refuses to read or write files of the database.")
    default: self = .internalError
    }
  }

  /// A write has no answer, and may have been made.
  static let outcomeUnknown = RESTError(504, "It is not known whether the write was made.")

  /// What a client is told that may not read; nil if it may.
  init?(reading verdict: AuthorizationVerdict) {
    switch verdict.decision {
    case .allow: return nil
    case .deny: self = .permissionDenied
    case .noIndex(let message): self = .badRequest(message)
    case .tooLarge: self = .readTooLarge
    }
  }

  /// What a client is told that may not write; nil if it may.
  init?(writing verdict: AuthorizationVerdict) {
    switch verdict.decision {
    case .allow: return nil
    case .deny, .noIndex: self = .permissionDenied
    case .tooLarge: self = .writeTooLarge
    }
  }

  /// Why a database refused a writing.
  init(writing error: DatabaseError) {
    self = error.isDamage ? Losses.ofWritingHere : RESTError(error)
  }

  /// Why no write is taken until the database is opened again.
  private static func sentence(poisonedBy cause: (any Error)?) -> String {
    let reason =
      if case EngineError.poisoned(.ownershipLost, _)? = cause {
        "The server has lost its lock of the database"
      } else {
        "The disk has failed"
      }
    return reason + ": no write until the database is opened again."
  }

  private static func sentence(unavailable error: DatabaseError) -> String {
    if case EngineError.unavailable(let reason)? = error.cause {
      // What follows are details, as the names of other systems, which are not for everybody.
      return reason.firstRange(of: ": ").map { String(reason[..<$0.lowerBound]) } ?? reason
    }
    return ["SyncedDirectory", "OwnedByServer"].contains(error.name)
      ? "The database has the data of another server." : "The database is not available now."
  }

  init(_ error: EngineError) { self.init(DatabaseError(served: error)) }
}

extension DatabaseError {
  /// Whether files here are damaged, and not what PostgreSQL has.
  var isDamage: Bool {
    code == .corrupt && !["SetBack", "DamagedBatch", "DamagedCheckpoint"].contains(name)
  }

  /// Whether a copy has writes that the log of all servers has lost: its files are good.
  fileprivate var isSetBack: Bool { name == "SetBack" }
}
