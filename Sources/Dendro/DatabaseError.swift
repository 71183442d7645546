package import DendroEngine
import DendroStorage
import DendroTree
public import Foundation

/// Why an operation of the database failed: the one error type of all operations.
///
/// The `async` forms throw it, completion blocks get it, a reference made from a bad path hands it to
/// every operation on it, and a write without completion sends it to
/// ``DatabaseOptions/errorHandler``. Compare ``code``; ``name`` carries the exception names that
/// Firebase uses for refused input.
public struct DatabaseError: Error, Sendable {
  /// What kind of refusal it was.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The number that `NSError` shows, but for ``noData``.
    public let rawValue: Int

    /// Makes a code; the database uses only those named here.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Rules, or a server that decides otherwise, do not allow the operation.
    public static let permissionDenied = Code(rawValue: 1)
    /// The operation is not available in this state of the database.
    public static let unavailable = Code(rawValue: 2)
    /// ``Database/purgeOutstandingWrites()`` took the operation back before the server had answered it.
    public static let canceled = Code(rawValue: 3)
    /// A value that the data model cannot hold, or update paths that contradict each other.
    public static let invalidData = Code(rawValue: 101)
    /// `.value` held a container.
    public static let invalidLeafValueType = Code(rawValue: 102)
    /// A path string was empty or had a forbidden character.
    public static let invalidPath = Code(rawValue: 103)
    /// A key was empty, too long or had a forbidden character.
    public static let invalidKey = Code(rawValue: 104)
    /// The location cannot be written.
    public static let notWritable = Code(rawValue: 105)
    /// Query parameters that do not go together.
    public static let invalidQuery = Code(rawValue: 106)
    /// Another argument that cannot be used.
    public static let invalidArgument = Code(rawValue: 107)
    /// A setting came after the database was first used.
    public static let alreadyInUse = Code(rawValue: 108)
    /// A URL that names no database, or another one.
    public static let invalidURL = Code(rawValue: 109)
    /// The database was closed.
    public static let closed = Code(rawValue: 201)
    /// The database was closed before its server has answered the write, which is kept and will be sent after the next
    /// opening.
    public static let pending = Code(rawValue: 216)
    /// Another opener holds the directory, see ``DatabaseError/processIdentifier``; or an archive needs what is to be
    /// removed.
    public static let locked = Code(rawValue: 202)
    /// The database was opened for reading only.
    public static let readOnly = Code(rawValue: 203)
    /// There is no database at the path.
    public static let notFound = Code(rawValue: 204)
    /// Stored bytes differ from what was once durable; see ``DatabaseError/file`` and
    /// ``DatabaseError/offset``. Or a file is missing: then `file` is the directory, and there is no offset. Nothing was
    /// changed.
    public static let corrupt = Code(rawValue: 205)
    /// The files are of a format that this version does not read.
    public static let unsupportedFormat = Code(rawValue: 206)
    /// The operating system refused a call on the files.
    public static let inputOutput = Code(rawValue: 207)
    /// The disk has no room. The write was taken back; writes work again once there is room.
    public static let diskFull = Code(rawValue: 208)
    /// The disk failed in a way that leaves its state unknown. Reads still work; reopen to write.
    public static let poisoned = Code(rawValue: 209)
    /// The tree is over ``DatabaseOptions/memoryByteLimit``.
    public static let memoryLimit = Code(rawValue: 210)
    /// One write is over ``DatabaseOptions/writeByteLimit``, or a file over a limit of its format.
    public static let tooLarge = Code(rawValue: 211)
    /// The directory was replaced, or this process is a fork of the one that opened it.
    public static let ownershipLost = Code(rawValue: 212)
    /// A state of the past that is not kept, or a write that is not there yet; see
    /// ``DatabaseError/historyRange``.
    public static let outOfHistory = Code(rawValue: 213)
    /// A priority was set where there is no data. ``DatabaseError/errorCode`` is 9999 for it, as with
    /// Firebase, which gives everything without a number of its own that one.
    public static let noData = Code(rawValue: 214)
    /// A transaction took longer than ``DatabaseOptions/transactionTimeLimit``.
    public static let timedOut = Code(rawValue: 215)
    /// Other writes came between each of a transaction's 25 runs. Also the code of a server's errors that have none of their
    /// own: ``DatabaseError/name`` says which, such as `maxretry`, `set` and `disconnect`.
    public static let maxRetry = Code(rawValue: 9999)
  }

  /// Behind one reference: errors travel in every reference and result, and are rarely there.
  private let storage: Storage

  private final class Storage: Sendable {
    let code: Code
    let name: String
    let message: String
    let file: String?
    let offset: UInt64?
    let processIdentifier: Int32?
    let uncertainWrites: ClosedRange<UInt64>?
    let historyRange: HistoryRange?
    let cause: (any Error)?

    init(
      _ code: Code, _ name: String, _ message: String, file: String?, offset: UInt64?,
      processIdentifier: Int32?, uncertainWrites: ClosedRange<UInt64>?,
      historyRange: HistoryRange?, cause: (any Error)?
    ) {
      self.code = code
      self.name = name
      self.message = message
      self.file = file
      self.offset = offset
      self.processIdentifier = processIdentifier
      self.uncertainWrites = uncertainWrites
      self.historyRange = historyRange
      self.cause = cause
    }
  }

  package init(
    _ code: Code, _ name: String, _ message: String, file: String? = nil, offset: UInt64? = nil,
    processIdentifier: Int32? = nil, uncertainWrites: ClosedRange<UInt64>? = nil,
    historyRange: HistoryRange? = nil, cause: (any Error)? = nil
  ) {
    storage = Storage(
      code, name, message, file: file, offset: offset, processIdentifier: processIdentifier,
      uncertainWrites: uncertainWrites,
      historyRange: historyRange, cause: cause)
  }

  /// What kind of refusal it was.
  public var code: Code { storage.code }
  /// The exception's name if Firebase raises one (`InvalidFirebaseData`, `InvalidPathValidation`, …),
  /// a name in the same manner otherwise.
  public var name: String { storage.name }
  /// What was refused, where, and the limit that it broke, in one sentence.
  public var message: String { storage.message }
  /// The file or directory concerned.
  public var file: String? { storage.file }
  /// Bytes from the beginning of ``file``.
  public var offset: UInt64? { storage.offset }
  /// The process that holds the directory, for ``Code/locked``; nil if that could not be found out.
  public var processIdentifier: Int32? { storage.processIdentifier }
  /// Writes that were acknowledged and that a power loss may take now, for ``Code/poisoned`` under a
  /// durability weaker than ``Database/Durability/everyCommit``.
  public var uncertainWrites: ClosedRange<UInt64>? { storage.uncertainWrites }
  /// The states of the past that can be read, for ``Code/outOfHistory``.
  public var historyRange: HistoryRange? { storage.historyRange }
  /// The error below this one.
  public var cause: (any Error)? { storage.cause }
}

extension DatabaseError: CustomStringConvertible {
  /// Name and message.
  public var description: String { "\(name): \(message)" }
}

extension DatabaseError: LocalizedError {
  /// The message.
  public var errorDescription: String? { message }
}

extension DatabaseError: CustomNSError {
  /// `com.firebase`, which programs written for Firebase compare with.
  public static var errorDomain: String { "com.firebase" }
  /// ``code`` as a number, but for ``Code/noData``, which is 9999 here as with Firebase.
  public var errorCode: Int { code == .noData ? 9999 : code.rawValue }
  /// The message, and the cause under `NSUnderlyingErrorKey`.
  public var errorUserInfo: [String: Any] {
    var info: [String: Any] = [NSLocalizedDescriptionKey: message]
    if let cause { info[NSUnderlyingErrorKey] = cause }
    return info
  }
}

extension DatabaseError: Equatable {
  /// Whether code, message and place are the same.
  public static func == (a: DatabaseError, b: DatabaseError) -> Bool {
    a.storage === b.storage
      || (a.code == b.code && a.message == b.message && a.file == b.file && a.offset == b.offset)
  }
}

extension DatabaseError {
  static let ownedByServer = DatabaseError(
    .unavailable, "OwnedByServer",
    "this is not available in a database that keeps in step with a server, which owns the data")

  package static let pending = DatabaseError(
    .pending, "WritePending",
    "the database is closed; the server has not answered the write, which is sent after the next opening"
  )

  package static let closed = DatabaseError(.closed, "DatabaseClosed", "the database is closed")

  static func timedOut(_ path: Path, _ limit: Duration) -> DatabaseError {
    DatabaseError(
      .timedOut, "TransactionTimedOut",
      "the transaction at \(path) took longer than \(limit), its limit, and has written nothing")
  }

  static func notWritable(_ path: Path) -> DatabaseError {
    DatabaseError(
      ValidationError(.notWritable, "\(path) cannot be written: .info is what the database says"))
  }

  /// The error of a decoder, for receivers that take errors of the database only.
  init(undecodable error: any Error) {
    self =
      error as? DatabaseError
      ?? DatabaseError(.invalidData, "UndecodableData", String(describing: error), cause: error)
  }

  init(_ error: ValidationError) {
    let code: Code =
      switch error.kind {
      case .invalidData: .invalidData
      case .invalidLeafValueType: .invalidLeafValueType
      case .invalidPath: .invalidPath
      case .invalidKey: .invalidKey
      case .notWritable: .notWritable
      case .invalidQuery: .invalidQuery
      case .invalidArgument: .invalidArgument
      }
    self.init(code, error.kind.rawValue, error.message)
  }

  package init(_ error: EngineError) {
    switch error {
    case .storage(let error): self.init(error)
    case .closed: self = .closed
    case .poisoned(_, let range):
      self.init(
        .poisoned, "DatabasePoisoned", error.description,
        uncertainWrites: range.map { $0.lowerBound.rawValue...$0.upperBound.rawValue },
        cause: error)
    case .diskFull: self.init(.diskFull, "DiskFull", error.description, cause: error)
    case .memoryLimit: self.init(.memoryLimit, "MemoryLimit", error.description)
    case .writeTooLarge: self.init(.tooLarge, "WriteTooLarge", error.description)
    case .validation(let error): self.init(error)
    case .readOnly: self.init(.readOnly, "DatabaseReadOnly", error.description)
    case .forked: self.init(.ownershipLost, "DatabaseOwnershipLost", error.description)
    case .outOfHistory(let point, let range): self.init(point, outOf: HistoryRange(range))
    case .noHistory: self.init(.unavailable, "HistoryUnavailable", error.description)
    case .noData: self.init(.noData, "NoData", error.description)
    case .denied: self.init(.permissionDenied, "permission_denied", error.description)
    case .overtaken: self.init(.maxRetry, "maxretry", error.description)
    case .unavailable: self.init(.unavailable, "Unavailable", error.description, cause: error)
    case .undecided: self.init(.pending, "Undecided", error.description, cause: error)
    case .tooManyWaiting: self.init(.unavailable, "TooManyWaiting", error.description)
    }
  }

  private init(_ point: HistoryPoint, outOf range: HistoryRange) {
    let asked =
      switch point {
      case .lsn(let lsn): "write \(lsn) is"
      case .time(let time): "the time \(HistoryTime.text(Date(milliseconds: time))) is"
      }
    self.init(
      .outOfHistory, "OutOfHistory",
      "\(asked) outside the history that is kept, which is \(range)", historyRange: range)
  }

  init(_ error: StorageError) {
    let text = error.description
    switch error {
    case .io(_, let path, let offset, _):
      self.init(
        error.isOutOfSpace ? .diskFull : .inputOutput,
        error.isOutOfSpace ? "DiskFull" : "InputOutput", text, file: path, offset: offset,
        cause: error)
    case .corrupt(let path, let offset, _, _):
      self.init(.corrupt, "DatabaseCorrupt", text, file: path, offset: offset, cause: error)
    case .missing(let directory, _, _):
      self.init(.corrupt, "DatabaseCorrupt", text, file: directory, cause: error)
    case .unsupportedVersion(let path, _, _), .unsupportedFeatures(let path, _, _):
      self.init(.unsupportedFormat, "UnsupportedFormat", text, file: path, cause: error)
    case .locked(let path, let pid):
      self.init(
        .locked, "DatabaseLocked", text, file: path, processIdentifier: pid > 0 ? pid : nil,
        cause: error)
    case .archiveBehind(let path, _):
      self.init(.locked, "ArchiveBehind", text, file: path, cause: error)
    case .ownershipLost(let path, _):
      self.init(.ownershipLost, "DatabaseOwnershipLost", text, file: path, cause: error)
    case .archive(let path):
      self.init(.readOnly, "DatabaseReadOnly", text, file: path, cause: error)
    case .otherLog(let path, _):
      self.init(.unavailable, "ArchiveOfAnotherLog", text, file: path, cause: error)
    case .limit: self.init(.tooLarge, "LimitExceeded", text, cause: error)
    case .notFound(let path), .unfinishedBackup(let path):
      self.init(.notFound, "DatabaseNotFound", text, file: path, cause: error)
    }
  }
}
