import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// An open database and the location that a verb is about.
struct Session {
  let engine: Engine
  let location: Location

  /// Beside a writer or alone; changes nothing.
  static func reading(_ arguments: Arguments, path: String?) throws -> Session {
    let location = try Location(path)
    let progress = Progress("opening")
    let engine = try Engine.open(
      at: Platform.absolutePath(arguments.directory), mode: .readOnly,
      progress: progress.recovery)
    return Session(engine: engine, location: location)
  }

  /// The one writer; `create` makes the database where there is none.
  ///
  /// The past that the database's own program keeps is not ours to remove: all of it stays.
  static func writing(
    _ arguments: Arguments, path: String?, create: Bool, history: HistoryRetention = .all
  ) throws -> Session {
    let location = try Location(path)
    var options = EngineOptions()
    options.history = history
    options.durability = try durability(arguments.value("durability"))
    let progress = Progress("opening")
    let engine = try Engine.open(
      at: Platform.absolutePath(arguments.directory), options: options,
      mode: create ? .readWrite : .readWriteExisting, progress: progress.recovery)
    note(engine.report)
    return Session(engine: engine, location: location)
  }

  static func durability(_ text: String?) throws -> Durability {
    switch text {
    case nil, "every-commit": return .everyCommit
    case "none": return .none
    case .some(let text):
      guard text.hasPrefix("interval:"), let milliseconds = Int(text.dropFirst(9)),
        (1...86_400_000).contains(milliseconds)
      else {
        throw Failure.usage(
          "--durability takes every-commit, none or interval:MS (1 to 86400000), not \(Failure.quoted(text))"
        )
      }
      return .interval(.milliseconds(milliseconds))
    }
  }

  /// What recovery did that somebody should know.
  static func note(_ report: RecoveryReport) {
    if let torn = report.tornTail { Terminal.note("dendro: recovered: \(torn)") }
    for reason in report.unreadableCheckpoints {
      Terminal.note("dendro: a checkpoint cannot be read, an older one serves: \(reason)")
    }
  }

  /// Admits a write and waits until it is as durable as was asked for; nil where it changed nothing.
  @discardableResult
  func write(_ write: Write) throws -> LogSequenceNumber? {
    let done = DispatchSemaphore(value: 0)
    let outcome = Mutex<Result<LogSequenceNumber?, EngineError>?>(nil)
    engine.submit(Draft(write)) { result in
      outcome.withLock { $0 = result }
      done.signal()
    }
    done.wait()
    return try outcome.withLock { $0 }?.get()
  }

  func close() throws { try engine.close() }
}

/// A path, or the priority of what is there.
struct Location {
  let path: Path
  let isPriority: Bool

  init(_ text: String?) throws {
    let text = text ?? "/"
    let suffix = "/.priority"
    isPriority = text.hasSuffix(suffix) || text == ".priority"
    do {
      path = try Path(parsing: String(isPriority ? text.dropLast(suffix.count) : text[...]))
    } catch {
      throw Failure(.badInput, "the path \(Failure.quoted(text)): \(error.message)")
    }
    guard path.count <= Limits.depth else {
      throw Failure(
        .badInput, "the path \(Failure.quoted(text)) has more than \(Limits.depth) levels")
    }
  }

  var description: String {
    isPriority ? (path.isRoot ? "/.priority" : "\(path)/.priority") : "\(path)"
  }
}

extension Progress {
  /// For the opening of a database, which may take seconds.
  var recovery: @Sendable (RecoveryProgress) -> Void {
    let box = UncheckedBox(self)
    return { progress in
      box.value.update(
        progress.completedByteCount, of: progress.totalByteCount,
        "\(progress.phase == .log ? "log" : "checkpoint") \(Format.bytes(progress.completedByteCount))"
      )
    }
  }
}

/// Hands a value to a closure that the engine calls on the thread that opens it and on no other.
private struct UncheckedBox<Value>: @unchecked Sendable {
  let value: Value
  init(_ value: Value) { self.value = value }
}

extension Failure {
  /// Whatever came out of a command, with the exit code that fits.
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
      self.init(.damaged, "\(error)", hint: "nothing was changed; 'dendro verify' tells more")
    case .unsupportedVersion: self.init(.unavailable, "\(error)", hint: "a newer dendro reads it")
    case .locked: self.init(.locked, "\(error)", hint: "reading verbs work beside it")
    case .limit: self.init(.damaged, "\(error)")
    case .notFound: self.init(.problem, "\(error)")
    }
  }
}
