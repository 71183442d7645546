package import DendroEngine
package import DendroStorage
import DendroTree
public import Dispatch
public import Foundation
import Synchronization

/// A tree of data in a directory, durable and observable.
///
/// ```swift
/// let database = try Database.open(at: "/var/lib/app/data")
/// let ref = database.reference()
/// ref.child("users/ada").setValue(["name": "Ada", "born": 1815])
/// ```
///
/// Any thread may use it. It stays open while it, a reference, a snapshot or a listener of it is held,
/// or until `close()`; releasing it without `close()` loses nothing that was acknowledged.
public final class Database: Sendable {
  /// Nil where it could not be opened.
  package let engine: Engine?
  private let openingError: DatabaseError?
  let hub: EventHub
  let transactions = TransactionQueue()
  let connection = Connection()
  let sessions = DatabaseSessions()
  let settings = DatabaseSettings()
  package let orderCache: OrderCache
  private let environment: DendroStorage.Environment
  private let closing = Closing()

  private init(
    _ engine: Engine?, _ openingError: DatabaseError?, _ hub: EventHub,
    _ environment: DendroStorage.Environment, _ options: DatabaseOptions
  ) {
    self.engine = engine
    orderCache = OrderCache(limits: .init(childCount: max(0, options.queryOrderLimit)))
    self.openingError = openingError
    self.hub = hub
    self.environment = environment
    engine?.setObserver(hub)
    register()
  }

  deinit {
    if hub.isForked { return }
    unregister()
    if let engine, !isClosed { ReleasedDatabases.close(engine, connection) }
    hub.close()
  }

  /// The engine, unless opening failed, the database was closed, or this is a fork.
  func usable() throws(DatabaseError) -> Engine {
    if hub.isForked { throw DatabaseError(EngineError.forked) }
    if isClosed { throw .closed }
    guard let engine else { throw openingError ?? .closed }
    if engine.isFollowing, let failure = engine.followingFailure { throw DatabaseError(failure) }
    return engine
  }

  // MARK: Locations

  /// The root.
  public func reference() -> DatabaseReference {
    connection.noteUse()
    return DatabaseReference(self, .root)
  }

  /// The location at `path`; "/" is the root. See ``DatabaseReference/child(_:)`` for what a path may
  /// be. A path may also begin with `.info`: `.info/connected` is whether the database counts as online
  /// (``goOffline()``), `.info/serverTimeOffset` is 0. These can be read and listened to, not written.
  public func reference(withPath path: String) -> DatabaseReference {
    do throws(ValidationError) {
      return reference().appending(try Path(location: path))
    } catch {
      return reference().failing(DatabaseError(error))
    }
  }

  // MARK: Callbacks

  /// Where event blocks, completion blocks and the error handler are called, one at a time and in order
  /// even if the queue is concurrent.
  ///
  /// The main queue on Apple's systems, a serial queue of the database's own elsewhere, since there the
  /// main queue often never runs.
  ///
  /// May be changed at any time, and takes effect at once: all that waits is called on the new queue, in
  /// its order and without loss, also where the queue before never ran anything. Only a block that is
  /// running at that moment ends on the queue before, and the new one waits for it. So set it before the
  /// first listener where it matters on which queue that one block runs.
  public var callbackQueue: DispatchQueue {
    get { hub.callbackQueue }
    set { hub.callbackQueue = newValue }
  }

  // MARK: Barriers

  /// Waits until every write admitted before the call is durable, whatever the durability.
  ///
  /// A write without a completion that was refused, or taken back by a full disk, is not among them:
  /// ``DatabaseOptions/errorHandler`` gets its error, and this call says nothing of it.
  ///
  /// - Throws: ``DatabaseError`` where the disk refuses, or the database is closed.
  public func synchronize() throws {
    let engine = try usable()
    try Self.translating { () throws(EngineError) in try engine.synchronize() }
  }

  /// `synchronize()` without blocking a thread.
  public func synchronize() async throws {
    let engine = try usable()
    do throws(EngineError) {
      try await engine.synchronize()
    } catch {
      throw DatabaseError(error)
    }
  }

  /// Writes the whole tree to a file, so that the next opening need not replay the log up to here, and
  /// removes what no opening needs any more. Writers and readers go on meanwhile.
  ///
  /// It also happens by itself: see ``DatabaseOptions/checkpointFactor``.
  ///
  /// - Throws: ``DatabaseError`` where the disk refuses, or the database is closed or read-only.
  public func checkpoint() throws {
    let engine = try usable()
    try Self.translating { () throws(EngineError) in try engine.checkpoint() }
  }

  /// `checkpoint()` without blocking a thread.
  public func checkpoint() async throws {
    let engine = try usable()
    do throws(EngineError) {
      try await engine.checkpoint()
    } catch {
      throw DatabaseError(error)
    }
  }

  /// Writes a copy, as of one moment, into a new directory, which opens like any other database.
  ///
  /// While it is under way, and where the process is killed before its end, the directory does not open: that throws
  /// ``DatabaseError/Code/notFound``. The next backup into it starts over.
  ///
  /// - Parameter path: absolute or relative to the working directory; must not hold a database. It is made
  ///   where it is missing.
  /// - Throws: ``DatabaseError`` where the disk refuses, or there are no files to copy; what was made by
  ///   then is removed again.
  public func backup(to path: String) throws {
    let engine = try usable()
    let path = try Self.absolute(path)
    try Self.translating { () throws(EngineError) in try engine.backup(to: path) }
  }

  /// `backup(to:)` on a thread of its own.
  public func backup(to path: String) async throws {
    let engine = try usable()
    let path = try Self.absolute(path)
    do throws(EngineError) {
      try await BackgroundThread.run(.backup) { () throws(EngineError) in
        try engine.backup(to: path)
      }
    } catch {
      throw DatabaseError(error)
    }
  }

  /// `backup(to:)` to a file URL.
  ///
  /// - Throws: as `backup(to:)` does; ``DatabaseError/Code/invalidArgument`` for any other URL.
  public func backup(to url: URL) throws { try backup(to: Self.path(of: url)) }

  /// `backup(to:)` to a file URL, on a thread of its own.
  ///
  /// - Throws: as `backup(to:)` does; ``DatabaseError/Code/invalidArgument`` for any other URL.
  public func backup(to url: URL) async throws {
    try await backup(to: Self.path(of: url))
  }

  // MARK: Closing

  /// Takes every admitted write to the disk and frees the directory. What `onDisconnect…` registered is
  /// the last write, after those of open sessions (``makeSession()``); an operation that is registered at the
  /// same time is in it or gets the error.
  ///
  /// Events and completions that wait are still delivered; then listeners' cancel blocks get
  /// ``DatabaseError/Code/closed``, and the listeners are gone. Later operations get that error too;
  /// snapshots stay readable. Transactions that were not admitted yet fail with it as well; what their
  /// blocks have written until then is written. Closing again does nothing but wait until the directory is
  /// free.
  ///
  /// Waits for the disk, but for no callback and no block: it may be called in any of them, and by
  /// ``DatabaseOptions/logging`` and ``DatabaseOptions/metrics``.
  ///
  /// - Throws: ``DatabaseError`` where the disk refused; the database is closed nevertheless.
  public func close() throws {
    if hub.isForked { throw DatabaseError(EngineError.forked) }
    guard closing.begin() else { return closing.wait() }
    try closeOnce()
  }

  /// `close()` without blocking a thread.
  public func close() async throws {
    if hub.isForked { throw DatabaseError(EngineError.forked) }
    guard closing.begin() else { return await closing.wait() }
    // No step runs on a thread of Swift's concurrency: calls of the blocking form may block all of these
    // until the directory is free.
    try await BackgroundThread.run(.closing) { () throws(DatabaseError) in try self.closeOnce() }
  }

  /// Suspends until the task is cancelled, or the database is closed elsewhere, and closes the database: what was
  /// admitted is on the disk when it returns. For a task that runs as long as an app or a service.
  ///
  /// - Throws: as `close()` does; nothing for the cancellation.
  public func run() async throws {
    let (ended, continuation) = AsyncStream.makeStream(of: Never.self)
    closing.notify { continuation.finish() }
    for await _ in ended {}
    try await close()
  }

  private func closeOnce() throws(DatabaseError) {
    unregister()
    defer {
      hub.close()
      closing.end()
    }
    guard let engine else { return }
    sessions.end(engine) { [hub] error in hub.report(DatabaseError(error)) }
    let last = connection.end(engine)
    try Self.translating { () throws(EngineError) in try engine.close(writing: last) }
  }

  var isClosed: Bool { closing.hasBegun }

  private static func translating(
    _ body: () throws(EngineError) -> Void
  ) throws(DatabaseError) {
    do throws(EngineError) {
      try body()
    } catch {
      throw DatabaseError(error)
    }
  }
}

// MARK: - Figures

extension Database {
  /// What was done since opening, and how things stand. Zeros where opening failed, and in a fork.
  public var statistics: DatabaseStatistics {
    let engine = hub.isForked ? nil : engine
    return DatabaseStatistics(engine?.statistics() ?? EngineStatistics())
  }

  /// What opening found. Empty for a database in memory.
  public var recoveryReport: DatabaseRecoveryReport {
    DatabaseRecoveryReport(engine?.report ?? RecoveryReport())
  }
}

// MARK: - Push ids

extension Database {
  /// One for the process, as with Firebase: ids ascend across databases too.
  private static let pushIDs = Mutex(PushIDGenerator())

  func nextPushID() -> String {
    Self.pushIDs.withLock {
      $0.next(now: environment.clock.now(), random: { environment.randomness.next() })
    }
  }
}

// MARK: - Opening

extension Database {
  /// Opens the database in the directory at `path`, and makes one where there is none.
  ///
  /// Writes after the newest checkpoint are replayed from the log, on the calling thread. A torn tail, which
  /// a crash has cut short, is moved to a file of its own, and ``recoveryReport`` says so.
  ///
  /// - Parameters:
  ///   - path: absolute or relative to the working directory; made with what is missing above it.
  ///   - options: how the database behaves.
  /// - Throws: ``DatabaseError``, having changed nothing: ``DatabaseError/Code/locked`` with the holder's
  ///   process id, ``DatabaseError/Code/corrupt`` with file and offset, …
  /// - Complexity: O(size of the data + log since the newest checkpoint).
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

  /// `open(at:options:)` with a file URL, on a thread of its own.
  public static func open(
    at url: URL, options: DatabaseOptions = DatabaseOptions()
  ) async throws -> Database {
    try await open(at: path(of: url), options: options)
  }

  /// Opens what is there for reading: changes nothing on the disk, not even a torn tail, and works
  /// beside a process that writes. Shows the state of the moment of opening; writes are refused.
  ///
  /// As long as it is open, the writer removes no file that it needs no longer: close it soon where much is
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

  /// Opens what another process writes, and follows it: shows the newest state, and changes nothing on the disk.
  /// Writes are refused with ``DatabaseError/Code/readOnly``.
  ///
  /// Queries, listeners and sequences see each write within ``DatabaseOptions/followInterval`` of its arrival in the
  /// log, as in the process that writes; ``changes(since:)`` gives each as soon as it is known to be durable. Where
  /// the writer's disk refuses what was already in the log, listeners get the difference back. The writer may
  /// end, be killed and start again meanwhile.
  ///
  /// For this reader, the writer keeps the log that was not followed yet, up to 256 MiB of it. Where the reader falls
  /// behind by more, or the writer purges its history, it shows the newest state, and listeners get the difference.
  ///
  /// Where the directory is removed or replaced or turns out to be damaged, it is followed no longer: cancel blocks
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

  /// A database without files, for tests and for state that need not survive.
  public static func inMemory(options: DatabaseOptions = DatabaseOptions()) -> Database {
    inMemory(options: options, environment: .system)
  }

  package static func inMemory(
    options: DatabaseOptions, environment: DendroStorage.Environment
  ) -> Database {
    let hub = EventHub(errorHandler: options.errorHandler)
    let engine = Engine.inMemory(
      options: options.engineOptions(reportingTo: hub), environment: environment)
    return Database(engine, nil, hub, environment, options)
  }

  package static func open(
    at path: String, options: DatabaseOptions, environment: DendroStorage.Environment = .system,
    mode: Engine.Mode
  ) throws(DatabaseError) -> Database {
    let path = try absolute(path)
    try options.checkHistory()
    while true {
      let closedCount = ReleasedDatabases.closedCount
      do throws(DatabaseError) {
        return try openAbsolute(path, options, environment, mode)
      } catch {
        // Perhaps locked by a database of this process that was released a moment ago and was closing.
        guard error.code == .locked, ReleasedDatabases.wait(since: closedCount) else { throw error }
      }
    }
  }

  private static func openAbsolute(
    _ path: String, _ options: DatabaseOptions, _ environment: DendroStorage.Environment,
    _ mode: Engine.Mode
  ) throws(DatabaseError) -> Database {
    let hub = EventHub(errorHandler: options.errorHandler)
    do throws(EngineError) {
      let engine = try Engine.open(
        at: path, options: options.engineOptions(reportingTo: hub), environment: environment,
        mode: mode, progress: options.engineProgress)
      return Database(engine, nil, hub, environment, options)
    } catch {
      throw DatabaseError(error)
    }
  }

  /// One that could not be opened: every operation on it gets the error.
  static func failed(_ error: DatabaseError) -> Database {
    Database(nil, error, EventHub(errorHandler: nil), .system, DatabaseOptions())
  }
}
