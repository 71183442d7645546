package import DendroEngine
package import DendroTree
import Synchronization

/// One client of a database: operations that are written when it leaves, and whether it counts as connected.
///
/// For a program that serves clients of its own, and shows which of them are there:
///
/// ```swift
/// let session = database.makeSession()
/// let status = database.reference(withPath: "status/ada")
/// try session.onDisconnectSetValue("offline", at: status)
/// try await status.setValue("online")
/// // …
/// try await session.end()
/// ```
///
/// The session ends with `end()`, when its last reference is released, or when its database is closed. Then its
/// operations are written, all of them as one write. Sessions know nothing of each other, nor of what the
/// database itself has registered (`DatabaseReference.onDisconnectSetValue(_:)`); `.info/connected` of the
/// database does not change with them. A crash loses what was registered.
///
/// A session keeps its database open. Any thread may use it.
public final class DatabaseSession: Sendable {
  /// The database.
  public let database: Database
  private let connection = Connection()
  private let watchers = Mutex(Watchers())

  private struct Watchers {
    var continuations: [Int: AsyncStream<Bool>.Continuation] = [:]
    var lastNumber = 0
    var hasEnded = false
  }

  /// - Parameter endsWithDatabase: whether closing the database ends the session.
  init(_ database: Database, endsWithDatabase: Bool) {
    self.database = database
    if endsWithDatabase { database.sessions.add(connection, of: self) }
  }

  deinit {
    database.sessions.remove(ObjectIdentifier(self))
    finish { [database] in database.report($0) }
  }

  // MARK: Registering

  /// Registers `setValue(_:)` at the reference for the end of the session; nil removes.
  ///
  /// It replaces what the session has registered there and below. Server values are resolved when it is written.
  ///
  /// - Parameters:
  ///   - value: as for `DatabaseReference.setValue(_:)`.
  ///   - reference: of the session's database.
  /// - Throws: ``DatabaseError`` for a value or a reference that cannot be written, and
  ///   ``DatabaseError/Code/closed`` after the end of the session.
  public func onDisconnectSetValue(_ value: Any?, at reference: DatabaseReference) throws {
    try register(reference) { (path, use) throws(ValidationError) in
      try Writes.set(value, at: path, use)
    }
  }

  /// Registers `setValue(_:andPriority:)` at the reference for the end of the session.
  ///
  /// - Throws: as `onDisconnectSetValue(_:at:)`.
  public func onDisconnectSetValue(
    _ value: Any?, andPriority priority: (any Copyable)?, at reference: DatabaseReference
  ) throws {
    try register(reference) { (path, use) throws(ValidationError) in
      try Writes.set(value, priority: priority, at: path, use)
    }
  }

  /// Registers `removeValue()` at the reference for the end of the session.
  ///
  /// - Throws: as `onDisconnectSetValue(_:at:)`.
  public func onDisconnectRemoveValue(at reference: DatabaseReference) throws {
    try onDisconnectSetValue(nil, at: reference)
  }

  /// Registers `updateChildValues(_:)` at the reference for the end of the session: every path as an operation
  /// of its own.
  ///
  /// - Throws: as `onDisconnectSetValue(_:at:)`.
  public func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any], at reference: DatabaseReference
  ) throws {
    try register(reference) { (path, use) throws(ValidationError) in
      try Writes.update(values, at: path, use)
    }
  }

  /// Cancels what the session has registered at the reference and below; see
  /// `DatabaseReference.cancelDisconnectOperations()`.
  ///
  /// - Throws: as `onDisconnectSetValue(_:at:)`.
  public func cancelDisconnectOperations(at reference: DatabaseReference) throws {
    try check(reference)
    try reference.checkRegistering()
    try connection.cancel(reference.location)
  }

  private func register(
    _ reference: DatabaseReference, _ making: WriteMaking
  ) throws(DatabaseError) {
    try check(reference)
    try connection.add(reference.disconnectDraft(making))
  }

  private func check(_ reference: DatabaseReference) throws(DatabaseError) {
    guard reference.owner === database else {
      throw DatabaseError(
        .invalidArgument, "InvalidArgumentError", "the reference is one of another database")
    }
    // A server ends the sessions of its clients itself.
    if database.remoteHolder != nil { throw .ownedByServer }
  }

  // MARK: Connected or not

  /// Whether the session counts as connected: true at first, and false after `goOffline()` and at the end.
  public var isConnected: Bool {
    connection.isOnline && !watchers.withLock { $0.hasEnded }
  }

  /// The session's `.info/connected`: its value now, then every new one. It ends with the session.
  ///
  /// If values come faster than they are taken, only the newest is kept.
  public var connectedValues: AsyncStream<Bool> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = watchers.withLock { watchers -> Int? in
        if watchers.hasEnded { return nil }
        watchers.lastNumber += 1
        watchers.continuations[watchers.lastNumber] = continuation
        return watchers.lastNumber
      }
      continuation.yield(isConnected)
      guard let number else { return continuation.finish() }
      continuation.onTermination = { [weak self] _ in
        self?.watchers.withLock { _ = $0.continuations.removeValue(forKey: number) }
      }
    }
  }

  /// Writes what was registered, and counts as not connected until `goOnline()`. If the write is refused,
  /// ``DatabaseOptions/errorHandler`` gets the error, and the operations stay registered.
  public func goOffline() {
    guard let engine = try? database.usable() else { return }
    connection.goOffline(engine) { [database] error in
      database.report(error)
    } _: { _ in
    } released: {
      show(false)
    }
  }

  /// Counts as connected again.
  public func goOnline() {
    connection.goOnline { _ in }
    show(isConnected)
  }

  private func show(_ isConnected: Bool) {
    let all = watchers.withLock { Array($0.continuations.values) }
    for continuation in all { continuation.yield(isConnected) }
  }

  // MARK: The end

  /// Ends the session: writes what was registered, as one write. Nothing can be registered any more. Ending again
  /// does nothing.
  ///
  /// - Throws: ``DatabaseError`` if the write was refused; it is not tried again.
  public func end() async throws {
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      finish { error in
        continuation.resume(with: error.map { .failure(DatabaseError($0)) } ?? .success(()))
      }
    }
  }

  /// Ends the session, and writes what was registered.
  ///
  /// - Parameter completion: called once, with the error of the write; nil if it was written, or there was nothing
  ///   to write. It may not wait.
  private func finish(completion: @escaping @Sendable (EngineError?) -> Void) {
    // The engine refuses the write if the database is closed.
    guard let draft = finish(), let engine = database.engine else { return completion(nil) }
    engine.submit(draft) { result in
      if case .failure(let error) = result { completion(error) } else { completion(nil) }
    }
  }

  /// Ends the session; what was registered is left to the caller.
  ///
  /// - Returns: all operations as one update of the root; nil if there are none.
  package func finish() -> Draft? {
    let continuations = watchers.withLock { watchers in
      watchers.hasEnded = true
      defer { watchers.continuations = [:] }
      return Array(watchers.continuations.values)
    }
    for continuation in continuations {
      continuation.yield(false)
      continuation.finish()
    }
    return connection.takeLast()
  }

  /// Registers what a write would do.
  package func register(_ draft: Draft) throws(DatabaseError) { try connection.add(draft) }

  /// `register(_:)`, unless the session would have more than so many bytes registered then.
  ///
  /// - Returns: whether it was registered.
  package func register(_ draft: Draft, upTo byteLimit: Int) throws(DatabaseError) -> Bool {
    try connection.add(draft, upTo: byteLimit)
  }

  /// `cancel(_:)`, unless the session would have more than so many bytes registered then.
  ///
  /// - Returns: whether it was done.
  package func cancel(_ path: Path, upTo byteLimit: Int) throws(DatabaseError) -> Bool {
    try connection.cancel(path, upTo: byteLimit)
  }

  /// Passes on an error to the database's error handler.
  package func report(_ error: EngineError) { database.report(error) }

  /// What is registered.
  package var operations: DisconnectOperations { connection.operations }

  /// Replaces what is registered, unless the session has ended.
  package func reset(to operations: DisconnectOperations) { connection.reset(to: operations) }

  /// Cancels what was registered at the path and below.
  package func cancel(_ path: Path) throws(DatabaseError) { try connection.cancel(path) }
}

extension Database {
  /// Begins a session: a client with on-disconnect operations and a connection of its own.
  ///
  /// - Returns: the session, which ends with its last reference at the latest.
  public func makeSession() -> DatabaseSession { DatabaseSession(self, endsWithDatabase: true) }

  /// `makeSession()` for a server, which ends its sessions itself.
  package func makeServedSession() -> DatabaseSession {
    DatabaseSession(self, endsWithDatabase: false)
  }

  fileprivate func report(_ error: EngineError?) {
    if let error { hub.report(DatabaseError(error)) }
  }
}

/// The sessions that end when their database is closed.
final class DatabaseSessions: Sendable {
  private let connections = Mutex<[ObjectIdentifier: Connection]>([:])

  fileprivate func add(_ connection: Connection, of session: DatabaseSession) {
    connections.withLock { $0[ObjectIdentifier(session)] = connection }
  }

  fileprivate func remove(_ session: ObjectIdentifier) {
    connections.withLock { _ = $0.removeValue(forKey: session) }
  }

  /// Writes what the sessions have registered; nothing can be registered after it.
  func end(_ engine: Engine, refused: @escaping @Sendable (EngineError) -> Void) {
    let open = connections.withLock { connections in
      defer { connections = [:] }
      return Array(connections.values)
    }
    for connection in open {
      guard let draft = connection.takeLast() else { continue }
      engine.submit(draft) { if case .failure(let error) = $0 { refused(error) } }
    }
  }
}
