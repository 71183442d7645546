package import DendroEngine
import DendroStorage
import DendroTree
public import Dispatch
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
  /// Nil if it could not be opened.
  package let engine: Engine?
  private let openingError: DatabaseError?
  let hub: EventHub
  let transactions: TransactionQueue
  let connection = Connection()
  let sessions = DatabaseSessions()
  let settings = DatabaseSettings()
  package let orderCache: OrderCache
  private let environment: DendroStorage.Environment
  private let pushID: (@Sendable () -> String)?
  private let ownPushIDs: PushIDs?
  /// Those with the time of a server that owns the data.
  private let serverPushIDs = PushIDs()
  let closing = Closing()
  /// Whether a server shows its commits to clients.
  let isServed = Atomic<Bool>(false)
  /// Whether a server owns the data. Each write asks: to load the reference takes a thousand instructions.
  private let isRemote = Atomic<Bool>(false)
  private let lateRemoteHolder = AtomicLazyReference<RemoteHolder>()
  /// Nil unless a server owns the data.
  @inline(__always)
  var remoteHolder: RemoteHolder? {
    isRemote.load(ordering: .acquiring) ? lateRemoteHolder.load() : nil
  }

  private let ownDirectory: String?

  /// The absolute path of its directory; nil in memory, and if opening failed.
  public var directory: String? { remoteHolder.map { $0.files?.path } ?? ownDirectory }

  init(
    engine: Engine?, at directory: String? = nil, openingError: DatabaseError? = nil, hub: EventHub,
    orderCache: OrderCache, environment: DendroStorage.Environment, options: DatabaseOptions
  ) {
    self.engine = engine
    ownDirectory = directory
    self.orderCache = orderCache
    self.openingError = openingError
    self.hub = hub
    self.environment = environment
    pushID = options.pushID
    ownPushIDs = options.clock == nil ? nil : PushIDs()
    transactions = TransactionQueue(
      timeLimit: options.transactionTimeLimit, reportTime: options.transactionReportTime
    ) { engine?.record($0) }
    engine?.setObserver(hub)
    register()
  }

  deinit {
    if hub.isForked { return }
    unregister()
    let holder = remoteHolder
    holder?.existing?.close()
    if !isClosed {
      if let engine { ReleasedDatabases.close(engine, connection) }
      if let files = holder?.files { ReleasedDatabases.close(files, connection) }
    }
    hub.close()
  }

  /// The server with which it keeps in step; nil if it is the only owner of its data.
  @inline(__always)
  package var remote: (any Remote)? { remoteHolder?.remote }

  /// Has it keep in step with a server from now on. Called before its first use.
  ///
  /// - Parameters:
  ///   - setup: with which server.
  ///   - log: gets lines.
  ///   - make: makes the remote, at the first use.
  func keepInStep(
    _ setup: RemoteSetup, log: @escaping @Sendable (LogEvent) -> Void,
    _ make: @escaping Remotes.Factory
  ) {
    if let holder = remoteHolder { return holder.change(setup, make) }
    let holder = RemoteHolder(
      RemoteLink(hub, connection, log: log), hub, settings, setup, make)
    _ = lateRemoteHolder.storeIfNil(holder)
    isRemote.store(true, ordering: .releasing)
    connection.show(isConnected: false, timeOffset: 0, isAuthenticated: false, hub.infoChanged)
    register()
  }

  /// What it has in files or in memory, also if a server owns the data.
  private var files: Engine? { remoteHolder?.files ?? engine }

  /// What keeps its writes; nil if nothing but a server does.
  private func storing() throws(DatabaseError) -> Engine? {
    guard let holder = remoteHolder else { return try usable() }
    try checkOpen()
    return holder.files
  }

  /// The engine that has the data: its own, or those that a server has said.
  func keeping() throws(DatabaseError) -> Engine {
    guard let files = remoteHolder?.files else { return try usable() }
    try checkOpen()
    return files
  }

  /// - Throws: if it was closed, or this is a fork.
  func checkOpen() throws(DatabaseError) {
    if hub.isForked { throw DatabaseError(EngineError.forked) }
    if isClosed { throw .closed }
  }

  /// Where the data of a location come from.
  func source(of location: Path) throws(DatabaseError) -> DataSource {
    if !isRemote.load(ordering: .acquiring) { return .engine(try own()) }
    try checkOpen()
    if location.isInfo {
      // A program that waits for a connection before it does anything else.
      remote?.use()
      return .info
    }
    return remote.map { .remote($0) } ?? .info
  }

  /// The engine, unless opening failed, the database was closed, or this is a fork; or a server owns the data.
  func usable() throws(DatabaseError) -> Engine {
    if isRemote.load(ordering: .acquiring) {
      try checkOpen()
      throw .ownedByServer
    }
    return try own()
  }

  /// The engine of a database whose data no server owns.
  @inline(__always)
  private func own() throws(DatabaseError) -> Engine {
    try checkOpen()
    guard let engine else { throw openingError ?? .closed }
    if engine.isFollowing, let failure = engine.followingFailure { throw DatabaseError(failure) }
    return engine
  }

  /// The engine whose completions come in the order of the writes, also while it is being closed; nil if there is none.
  var orderingEngine: Engine? {
    isRemote.load(ordering: .acquiring) || hub.isForked ? nil : engine
  }

  // MARK: State

  /// Whether `close()` was called.
  public var isClosed: Bool { closing.hasBegun }

  /// Whether writes are refused because the database was opened for reading, or follows a process that writes.
  public var isReadOnly: Bool { engine?.isReadOnly ?? false }

  // MARK: Locations

  /// The root.
  public func reference() -> DatabaseReference {
    connection.noteUse()
    return DatabaseReference(self, .root)
  }

  /// The location at `path`; "/" is the root. See ``DatabaseReference/child(_:)`` for what a path may
  /// be. A path may also begin with `.info`: `.info/connected` is whether the database counts as online
  /// (``goOffline()``), `.info/serverTimeOffset` is by how many milliseconds a server's clock is ahead. These can be read and listened to, not written.
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
  /// its order and without loss, also if the queue before never ran anything. Only a block that is
  /// running at that moment ends on the queue before, and the new one waits for it. So set it before the
  /// first listener if it matters on which queue that one block runs.
  ///
  /// A queue that stands still holds up no writer. At most some 100 states wait for the listeners of a location, but every
  /// completion block waits, without a limit: about 400 bytes each, and what it captures. If writes
  /// come faster than their blocks are called, memory grows until they are. Then use the `async` forms,
  /// each of which ends when its write does, or write without blocks and wait with `synchronize()` now and then;
  /// and do long work elsewhere than in blocks.
  public var callbackQueue: DispatchQueue {
    get { hub.callbackQueue }
    set { hub.callbackQueue = newValue }
  }

  // MARK: Barriers

  /// Waits until every write admitted before the call is durable, whatever the durability. In a database that keeps in step
  /// with a server: until all that waits for its answer is in the directory, if there is one; see
  /// ``waitForPendingWrites()``.
  ///
  /// A write without a completion that was refused, or taken back by a full disk, is not among them:
  /// ``DatabaseOptions/errorHandler`` gets its error, and this call says nothing of it.
  ///
  /// - Throws: ``DatabaseError`` if the disk refuses, or the database is closed.
  public func synchronize() throws {
    guard let engine = try storing() else { return }
    try Self.translating { () throws(EngineError) in try engine.synchronize() }
  }

  /// `synchronize()` without blocking a thread.
  public func synchronize() async throws {
    guard let engine = try storing() else { return }
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
  /// - Throws: ``DatabaseError`` if the disk refuses, or the database is closed or read-only.
  public func checkpoint() throws {
    let engine = try keeping()
    try Self.translating { () throws(EngineError) in try engine.checkpoint() }
  }

  /// `checkpoint()` without blocking a thread.
  public func checkpoint() async throws {
    let engine = try keeping()
    do throws(EngineError) {
      try await engine.checkpoint()
    } catch {
      throw DatabaseError(error)
    }
  }

  // MARK: Closing

  /// Closes the database. In one that keeps in step with a server, writes without an answer fail with
  /// ``DatabaseError/Code/pending`` if they are kept in a directory, from which they are sent after the next opening, and
  /// else with ``DatabaseError/Code/closed``: call ``waitForPendingWrites()`` first.
  ///
  /// In one that owns its data, takes every admitted write to the disk and frees the directory. What `onDisconnect…` registered is
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
  /// - Throws: ``DatabaseError`` if the disk refused; the database is closed nevertheless.
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

  private func closeOnce() throws(DatabaseError) {
    unregister()
    defer {
      transactions.close()
      hub.close()
      closing.end()
    }
    var failure: DatabaseError?
    if let holder = remoteHolder {
      holder.existing?.close()
      if let files = holder.files {
        do throws(EngineError) { try files.close() } catch { failure = DatabaseError(error) }
      }
    }
    try closeEngine()
    if let failure { throw failure }
  }

  private func closeEngine() throws(DatabaseError) {
    guard let engine else { return }
    sessions.end(engine) { [hub] error in hub.report(DatabaseError(error)) }
    let last = connection.end(engine)
    try Self.translating { () throws(EngineError) in
      try engine.close(writing: last.map { EncodedWrite($0) })
    }
  }

  static func translating(
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
  /// What was done since opening, and how things stand. Zeros if opening failed, and in a fork.
  public var statistics: DatabaseStatistics {
    let engine = hub.isForked ? nil : files
    return DatabaseStatistics(engine?.statistics() ?? EngineStatistics())
  }

  /// What opening found. Empty for a database in memory.
  public var recoveryReport: DatabaseRecoveryReport {
    DatabaseRecoveryReport(files?.report ?? RecoveryReport())
  }
}

// MARK: - Push ids

extension Database {
  /// One for the process, as with Firebase: ids ascend across databases too.
  private static let pushIDs = PushIDs()

  func nextPushID() -> String {
    if let pushID { return pushID() }
    let now = environment.clock.now()
    let random = { self.environment.randomness.next() }
    // They sort with those of clients whose clocks are right. The server's clock is no other database's.
    if isRemote.load(ordering: .relaxed) {
      return serverPushIDs.next(now, offset: connection.timeOffset, random)
    }
    // A clock of a test's own is no other database's.
    if let ownPushIDs { return ownPushIDs.next(now, random) }
    return Self.pushIDs.next(now, random)
  }
}

/// A generator of push ids for several threads.
private final class PushIDs: Sendable {
  private struct State {
    var generator = PushIDGenerator()
    var offset: Int64 = 0
  }

  private let state = Mutex(State())
  /// So many milliseconds the difference of two clocks varies with the way of a message.
  private static let offsetTolerance: Int64 = 1_000

  /// - Parameter offset: how many milliseconds another clock is ahead. Once it has changed, ids no longer ascend from those
  ///   before.
  func next(_ now: Int64, offset: Int64 = 0, _ random: () -> UInt64) -> String {
    // A server may say anything. No id has a later time.
    let offset = min(max(offset, -1 << 48), 1 << 48)
    return state.withLock { state in
      if !(state.offset - Self.offsetTolerance...state.offset + Self.offsetTolerance).contains(
        offset)
      {
        state = State(offset: offset)
      }
      return state.generator.next(now: now + offset, random: random)
    }
  }
}
