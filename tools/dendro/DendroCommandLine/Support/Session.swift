import Dendro
import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// An open database and the location that a verb is about.
struct Session {
  let engine: Engine
  let location: Location

  /// Opens a database beside a writer or alone; changes nothing.
  static func reading(_ arguments: Arguments, path: String?) throws -> Session {
    let location = try Location(path)
    let progress = Progress("opening")
    let engine = try Engine.open(
      at: arguments.directoryPath(), mode: .readOnly, progress: progress.recovery)
    return Session(engine: engine, location: location)
  }

  /// Opens a database as its one writer.
  ///
  /// The history that the database's own program keeps is not ours to remove: by default all of it
  /// stays.
  ///
  /// - Parameters:
  ///   - creates: whether the database is made if there is none, unless `--no-create` is given
  ///     or other files stand there.
  ///   - changesData: whether data may be changed, which those of a server may not.
  static func writing(
    _ arguments: Arguments, at location: Location = .root, creates: Bool,
    history: HistoryRetention = .all, changesData: Bool = true
  ) throws -> Session {
    let path = try arguments.directoryPath()
    var options = EngineOptions()
    options.history = history
    options.durability = try durability(arguments.value("durability"))
    let creates = creates && !arguments.has(.noCreate)
    if creates { try refuseOtherFiles(in: path) }
    let progress = Progress("opening")
    let deadline = try deadline(arguments)
    var engine: Engine?
    while engine == nil {
      do throws(EngineError) {
        engine = try Engine.open(
          at: path, options: options, mode: creates ? .readWrite : .readWriteExisting,
          progress: progress.recovery)
      } catch {
        guard case .storage(.locked(_, let pid)) = error, Platform.uptime() < deadline else {
          throw error
        }
        progress.begin("waiting for the process \(pid)")
        Interruption.sleep(milliseconds: 20)
      }
    }
    guard let engine else { preconditionFailure("opening gives an engine or throws") }
    progress.clear()
    if changesData, let server = SyncedDirectory.server(of: engine) {
      try? engine.close()
      throw Failure(
        .badInput,
        "the database at \(arguments.directory) has the data of \(server), which only that server changes"
      )
    }
    if engine.report.created { Terminal.note("dendro: made a new database in \(path)") }
    note(engine.report)
    return Session(engine: engine, location: location)
  }

  /// How a removal of the past waits for readers and archives: as long as is left of `--wait`, or 10 seconds.
  ///
  /// - Parameter begin: since when the verb runs.
  static func purge(_ arguments: Arguments, since begin: UInt64) throws -> Purge {
    var purge = Purge { obstacle in
      let what: String
      if case .archiveBehind(_, let lsn) = obstacle {
        what = "an archive, which has been copied up to write \(lsn)"
      } else {
        what = "a process that reads the database"
      }
      Terminal.note("dendro: waiting for \(what)")
    }
    if let wait = try wait(arguments) {
      let passed = Double(Platform.uptime() - begin) / 1e9
      purge.limit = .seconds(max(0, wait - passed))
    }
    return purge
  }

  /// Opens a database as `writing` does with `creates`, for a verb that only checks; if there is none, checks that one
  /// can be made, and gives an empty one in memory.
  static func rehearsing(_ arguments: Arguments) throws -> Session {
    let path = try arguments.directoryPath()
    let environment = Environment.system
    let isThere: Bool
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(path, environment: environment, mode: .following)
      defer { directory.close() }
      isThere = try !directory.contents().isEmpty
    } catch {
      guard case .notFound = error else { throw error }
      isThere = false
    }
    if isThere || arguments.has(.noCreate) { return try writing(arguments, creates: true) }
    _ = try (durability(arguments.value("durability")), wait(arguments))
    try refuseOtherFiles(in: path)
    let footprint = try Footprint(of: path, environment.fileSystem)
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(
        path, environment: environment, mode: .readWrite(create: true))
      defer { directory.close() }
      footprint.remove()
    } catch {
      if case .locked = error { throw error }
      footprint.remove()
      throw error
    }
    return Session(engine: Engine.inMemory(), location: .root)
  }

  /// Until when a lock is waited for, in the nanoseconds of `Platform.uptime()`.
  private static func deadline(_ arguments: Arguments) throws -> UInt64 {
    guard let seconds = try wait(arguments) else { return 0 }
    return Platform.uptime() + UInt64(seconds * 1e9)
  }

  private static func wait(_ arguments: Arguments) throws -> Double? {
    guard let text = arguments.value("wait") else { return nil }
    guard let seconds = Double(text), (0...86_400).contains(seconds) else {
      throw Failure.usage(
        "--wait takes seconds from 0 to 86400, not \(Failure.quoted(text))")
    }
    return seconds
  }

  /// A directory with other files and no database is not if one is to be made: the path may be
  /// mistyped.
  private static func refuseOtherFiles(in path: String) throws {
    let contents: DatabaseDirectory.Contents
    do throws(StorageError) {
      let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
      defer { directory.close() }
      contents = try directory.contents()
    } catch {
      if case .notFound = error { return }
      throw error
    }
    let names = contents.tornFiles + contents.foreign
    guard contents.isEmpty, let first = names.first else { return }
    let more = names.count > 1 ? " and \(Format.count(names.count - 1)) more" : ""
    throw Failure(
      .badInput,
      "there is no database at \(path), and none is made there beside \(Failure.quoted(first))\(more)",
      hint: "a new database needs a new or an empty directory")
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

  /// Says what recovery changed or left out.
  static func note(_ report: RecoveryReport) {
    if let torn = report.tornTail { Terminal.note("dendro: recovered: \(torn)") }
    let base = report.checkpointLSN.map { "that at write \($0) serves" } ?? "the log serves"
    for reason in report.unreadableCheckpoints {
      Terminal.note("dendro: a checkpoint cannot be read, and \(base): \(reason)")
    }
  }

  /// Admits a write and waits until it is as durable as was asked for; nil if it changed nothing.
  @discardableResult
  func write(_ write: Write) throws -> LogSequenceNumber? { try self.write(Draft(write)) }

  /// `write(_:)` of a write that may have server values.
  @discardableResult
  func write(_ draft: Draft) throws -> LogSequenceNumber? {
    let done = DispatchSemaphore(value: 0)
    let outcome = Mutex<Result<LogSequenceNumber?, EngineError>?>(nil)
    engine.submit(draft) { result in
      outcome.withLock { $0 = result }
      done.signal()
    }
    done.wait()
    return try outcome.withLock { $0 }?.get()
  }

  func close() throws { try engine.close() }

  /// Closes the database after `body`, also if that throws.
  func closing<Result>(after body: () throws -> Result) throws -> Result {
    let result: Result
    do {
      result = try body()
    } catch {
      try? close()
      throw error
    }
    try close()
    return result
  }
}
