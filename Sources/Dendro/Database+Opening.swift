package import DendroEngine
package import DendroStorage
public import Foundation

extension Database {
  /// Opens the database in the directory at `path`, and makes one if there is none.
  ///
  /// Writes after the newest checkpoint are replayed from the log, on the calling thread. A torn tail, which
  /// a crash has cut short, is moved to a file of its own, and ``recoveryReport`` says so.
  ///
  /// - Parameters:
  ///   - path: absolute or relative to the working directory; made with what is missing above it.
  ///   - options: how the database behaves.
  /// - Throws: ``DatabaseError``, having changed nothing: ``DatabaseError/Code/locked`` with the holder's
  ///   process id, ``DatabaseError/Code/corrupt`` with file and offset, …
  /// - Complexity: O(log since the newest checkpoint): what the checkpoint holds is read when it is used
  ///   (``DatabaseOptions/loading``).
  public static func open(
    at path: String, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(
      at: path, options: options,
      mode: options.createsMissing ? .readWrite : .readWriteExisting)
  }

  /// `open(at:options:)` with a file URL; any other is refused with
  /// ``DatabaseError/Code/invalidArgument``.
  public static func open(
    at url: URL, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(at: path(of: url), options: options)
  }

  /// `open(at:options:)` on a thread of its own.
  public static func open(
    at path: String, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await BackgroundThread.run(.opening) { () throws(DatabaseError) in
      try open(
        at: path, options: options,
        mode: options.createsMissing ? .readWrite : .readWriteExisting)
    }
  }

  /// `open(at:options:)`, and waits for another process or database that holds the directory, if one does, up to a
  /// duration. For a service that is started while the one before it ends.
  ///
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/locked`` if the directory is still held then; `CancellationError`
  ///   if the task is cancelled while it waits.
  public static func open(
    at path: String, waitingFor duration: Duration, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    // A clock has an end.
    let deadline = ContinuousClock.now + min(duration, .seconds(1_000_000_000))
    while true {
      do {
        return try await open(at: path, options: options)
      } catch let error as DatabaseError where error.code == .locked {
        let rest = deadline - .now
        if rest <= .zero { throw error }
        try await Task.sleep(for: min(rest, .milliseconds(20)))
      }
    }
  }

  /// `open(at:waitingFor:options:)` with a file URL.
  public static func open(
    at url: URL, waitingFor duration: Duration, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await open(at: path(of: url), waitingFor: duration, options: options)
  }

  /// `open(at:options:)` with a file URL, on a thread of its own.
  public static func open(
    at url: URL, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await open(at: path(of: url), options: options)
  }

  /// Opens what is there for reading: changes nothing on the disk, not even a torn tail, and works
  /// beside a process that writes. Shows the state of the moment of opening; writes are refused.
  ///
  /// As long as it is open, the writer removes no file that it needs no longer: close it soon if much is
  /// written.
  ///
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/notFound``, ``DatabaseError/Code/corrupt``, …
  public static func open(
    readOnly path: String, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(at: path, options: options, mode: .readOnly)
  }

  /// `open(readOnly:options:)` on a thread of its own.
  public static func open(
    readOnly path: String, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await BackgroundThread.run(.opening) { () throws(DatabaseError) in
      try open(at: path, options: options, mode: .readOnly)
    }
  }

  /// `open(readOnly:options:)` with a file URL; any other is refused with ``DatabaseError/Code/invalidArgument``.
  public static func open(
    readOnly url: URL, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(readOnly: path(of: url), options: options)
  }

  /// `open(readOnly:options:)` with a file URL, on a thread of its own.
  public static func open(
    readOnly url: URL, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await open(readOnly: path(of: url), options: options)
  }

  /// Opens what another process writes, and follows it: shows the newest state, and changes nothing on the disk.
  /// Writes are refused with ``DatabaseError/Code/readOnly``.
  ///
  /// Queries, listeners and sequences see each write within ``DatabaseOptions/followInterval`` of its arrival in the
  /// log, as in the process that writes; ``changes(since:)`` gives each as soon as it is known to be durable. If
  /// the writer's disk refuses what was already in the log, listeners get the difference back. The writer may
  /// end, be killed and start again meanwhile.
  ///
  /// For this reader, the writer keeps the log that was not followed yet, up to 256 MiB of it. If the reader falls
  /// behind by more, or the writer purges its history, it shows the newest state, and listeners get the difference.
  ///
  /// If the directory is removed or replaced or turns out to be damaged, it is followed no longer: cancel blocks
  /// and sequences get the error, and so does every read. Open it again once it is mended.
  ///
  /// - Throws: ``DatabaseError``: ``DatabaseError/Code/notFound``, ``DatabaseError/Code/corrupt``, …
  public static func open(
    following path: String, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(at: path, options: options, mode: .following)
  }

  /// `open(following:options:)` on a thread of its own.
  public static func open(
    following path: String, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await BackgroundThread.run(.opening) { () throws(DatabaseError) in
      try open(at: path, options: options, mode: .following)
    }
  }

  /// `open(following:options:)` with a file URL; any other is refused with ``DatabaseError/Code/invalidArgument``.
  public static func open(
    following url: URL, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(following: path(of: url), options: options)
  }

  /// `open(following:options:)` with a file URL, on a thread of its own.
  public static func open(
    following url: URL, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await open(following: path(of: url), options: options)
  }

  /// A database without files, for tests and for state that need not survive.
  public static func inMemory(options: DatabaseOptions = DatabaseOptions()) -> Database {
    inMemory(options: options, environment: .system)
  }

  package static func inMemory(
    options: DatabaseOptions, environment: DendroStorage.Environment
  ) -> Database {
    let hub = EventHub(errorHandler: options.errorHandler)
    let orderCache = options.makeOrderCache()
    let environment = options.applied(to: environment)
    let engine = Engine.inMemory(
      options: options.engineOptions(reportingTo: hub, orderCache), environment: environment)
    return Database(
      engine: engine, hub: hub, orderCache: orderCache, environment: environment, options: options)
  }

  package static func open(
    at path: String, options: DatabaseOptions, environment: DendroStorage.Environment = .system,
    mode: Engine.Mode
  ) throws(DatabaseError) -> Database {
    let hub = EventHub(errorHandler: options.errorHandler)
    let orderCache = options.makeOrderCache()
    let environment = options.applied(to: environment)
    let engine = try engine(
      at: path, options: options, environment: environment, mode: mode, reportingTo: hub, orderCache
    )
    do throws(DatabaseError) {
      try SyncedDirectory.refuse(engine)
    } catch {
      try? engine.close()
      throw error
    }
    return Database(
      engine: engine, at: engine.path, hub: hub, orderCache: orderCache, environment: environment,
      options: options)
  }

  /// Opens a directory, and waits for a database of this process that was released a moment ago and is closing it.
  static func engine(
    at path: String, options: DatabaseOptions, environment: DendroStorage.Environment,
    mode: Engine.Mode, reportingTo hub: EventHub, _ orderCache: OrderCache
  ) throws(DatabaseError) -> Engine {
    let path = try absolute(path)
    try options.checkHistory()
    while true {
      let closedCount = ReleasedDatabases.closedCount
      do throws(EngineError) {
        return try Engine.open(
          at: path, options: options.engineOptions(reportingTo: hub, orderCache),
          environment: environment, mode: mode, progress: options.engineProgress)
      } catch {
        let error = DatabaseError(error)
        guard error.code == .locked, ReleasedDatabases.wait(since: closedCount) else { throw error }
      }
    }
  }

  /// One that could not be opened: every operation on it gets the error.
  static func failed(_ error: DatabaseError) -> Database {
    Database(
      engine: nil, openingError: error, hub: EventHub(errorHandler: nil),
      orderCache: DatabaseOptions().makeOrderCache(), environment: .system,
      options: DatabaseOptions())
  }

  /// One whose data are a server's, and of which nothing is kept here.
  package static func remote(
    _ setup: RemoteSetup, options: DatabaseOptions, _ make: @escaping Remotes.Factory
  ) -> Database {
    let database = Database(
      engine: nil, openingError: .ownedByServer, hub: EventHub(errorHandler: options.errorHandler),
      orderCache: options.makeOrderCache(), environment: options.applied(to: .system),
      options: options)
    database.keepInStep(setup, log: options.log, make)
    return database
  }
}
