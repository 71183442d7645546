import Dendro
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
    case let error as DatabaseError where error.cause != nil:
      self.init(describing: error.cause ?? error)
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
    case .memoryLimit, .closed, .readOnly, .forked, .overtaken, .denied, .tooManyWaiting,
      .unavailable, .undecided:
      self.init(.unavailable, "\(error)")
    case .outOfHistory(.lsn(let lsn), let range) where lsn > range.newest:
      self.init(.problem, "there is no write \(lsn) yet; \(range)")
    case .outOfHistory(.lsn, _), .noHistory: self.init(.problem, "\(error)")
    case .outOfHistory(.time(let time), let range):
      self.init(.problem, "the state at \(Format.time(time)) is not kept; \(range)")
    case .writeTooLarge, .validation, .noData: self.init(.badInput, "\(error)")
    }
  }

  init(_ error: StorageError) {
    switch error {
    case .io(_, let path, _, .notDirectory):
      self.init(.inputOutput, "\(path) is a file, or below one: a database is a directory")
    case .io, .ownershipLost: self.init(.inputOutput, "\(error)")
    case .corrupt(let path, _, _, _):
      self.init(.damaged, "\(error)", hint: Failure.damageHint)
      damagedDirectory = path.lastIndex(of: "/").map { String(path[..<$0]) }
    case .missing(let directory, _, _):
      self.init(.damaged, "\(error)", hint: Failure.damageHint)
      damagedDirectory = directory
    case .limit: self.init(.damaged, "\(error)", hint: Failure.damageHint)
    case .unsupportedVersion, .unsupportedFeatures:
      self.init(.unavailable, "\(error)", hint: "a newer dendro reads it")
    case .locked:
      self.init(.locked, "\(error)", hint: Failure.lockedHint)
    case .archiveBehind:
      self.init(
        .locked, "\(error)",
        hint: "--wait SECONDS waits longer until it has copied the rest")
    case .notFound(let path): self = .noDatabase(at: path)
    case .unfinishedBackup, .otherLog: self.init(.problem, "\(error)")
    case .archive:
      self.init(.unavailable, "\(error)", hint: "dendro restore ARCHIVE NEW makes a database of it")
    }
  }

  /// What helps if the files are damaged; `DIRECTORY` stands for that of the command line.
  private static let damageHint =
    """
    'dendro verify DIRECTORY' lists all damage,
      'dendro get DIRECTORY --salvage' shows the last state that is proven, if one is,
      'dendro repair DIRECTORY NEW' saves what can be read into the new directory NEW
    """

  private static let lockedHint =
    "reading verbs work beside it; verbs that write wait for it with --wait SECONDS"

  /// The hint without options that the verb does not take.
  func fitting(_ command: Command) -> Failure {
    guard hint == Self.lockedHint, !command.options.contains(where: { $0.name == "wait" }) else {
      return self
    }
    var failure = self
    failure.hint = "reading verbs work beside it; try again when it has closed it"
    return failure
  }

  /// The hint with that of these words in it that is the damaged directory; the directory itself if none is, and the first word
  /// if it is not known which one is damaged.
  func naming(_ words: [String]) -> Failure {
    guard code == .damaged else { return self }
    let named = words.first { word in
      guard let damagedDirectory else { return true }
      var path = (try? Arguments.absolutePath(word, "DIRECTORY")) ?? word
      while path.count > 1, path.hasSuffix("/") { path.removeLast() }
      return path == damagedDirectory
    }
    guard let directory = named ?? damagedDirectory else { return self }
    var failure = self
    // As a shell takes it back.
    let plain = directory.utf8.allSatisfy { byte in
      Character(UnicodeScalar(byte)).isLetter || Character(UnicodeScalar(byte)).isNumber
        || "/._-+,:@%".utf8.contains(byte)
    }
    let word = plain ? directory : "'" + directory.replacing("'", with: #"'\''"#) + "'"
    failure.hint = hint?.replacing("DIRECTORY", with: word)
    return failure
  }
}
