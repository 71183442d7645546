import DendroEngine
package import DendroTree

/// The server with which a database keeps in step. The database asks it, and not its engine, at four places: a write, a
/// transaction, a read, a registration.
///
/// Any thread may call it. Completions may be called before the call that they belong to has returned, and may not wait.
package protocol Remote: AnyObject, Sendable {
  /// Makes a write, which listeners see at once.
  ///
  /// - Parameters:
  ///   - draft: checked.
  ///   - completion: gets the server's answer, once.
  func write(_ draft: Draft, completion: @escaping @Sendable (DatabaseError?) -> Void)

  /// Runs a transaction on the calling thread until its block has decided for the first time, and later on others.
  func transact(_ transaction: RemoteTransaction)

  /// Reads what a target shows: what is known of it, or else what the server says.
  func read(
    _ target: QueryTarget, completion: @escaping @Sendable (Result<Node, DatabaseError>) -> Void)

  /// Begins to keep a target in step for a listener.
  ///
  /// - Parameters:
  ///   - use: of the listener.
  ///   - begun: called once on the calling thread with what is known now. Changes of that come later.
  func listen(_ use: RemoteUse, begun: (Known) -> Void)

  /// Ends what listeners needed.
  func end(_ uses: [RemoteUse])

  /// Keeps a target in step without a listener, or no more.
  func keep(_ target: QueryTarget, _ isKept: Bool)

  /// Has the server write something once the connection ends.
  func registerOnDisconnect(
    _ draft: Draft, completion: @escaping @Sendable (DatabaseError?) -> Void)

  /// Has the server forget what it was to write at a location and below.
  func cancelOnDisconnect(
    _ path: Path, completion: @escaping @Sendable (DatabaseError?) -> Void)

  /// Has it connect, unless it is offline, as any other use does.
  func use()
  func goOnline()
  func goOffline()

  /// Takes back all that the server has not answered, but for the writes of other users.
  func purge()

  /// Waits until the server has answered all writes before.
  ///
  /// - Parameter completion: called once, also if the database is closed first.
  func afterPendingWrites(_ completion: @escaping @Sendable () -> Void)

  /// The writes without an answer, in their order.
  func pendingWrites() -> [RemoteWrite]

  /// Sends a write that waits for the application's decision.
  func release(write number: Int)

  /// Takes back a write.
  func drop(write number: Int)

  /// Signs in by tokens of this source, or out.
  func authenticate(_ source: TokenSource?)

  /// Ends the connection. What waits for an answer fails, with `pending` if it is kept.
  func close()
}

/// What is known of what a target shows.
package struct Known: Sendable {
  package let node: Node
  /// Whether that is all.
  package let isComplete: Bool

  package init(_ node: Node, isComplete: Bool) {
    self.node = node
    self.isComplete = isComplete
  }
}

/// A listener that needs what a target shows, or a sequence.
package struct RemoteUse: Sendable {
  package let target: QueryTarget
  /// Unique in the process.
  package let id: UInt
}

/// Gives a token by which a client signs in.
package typealias TokenSource = @Sendable () async throws -> DatabaseToken

/// A transaction as a remote runs it.
package struct RemoteTransaction: Sendable {
  package let path: Path
  /// Whether listeners see what it makes before the server has taken it.
  package let isVisible: Bool
  /// Runs the block. Called on threads that may wait, never twice at once.
  package let run: @Sendable (_ input: Node) -> Step
  /// Called once, unless a step was `ended`.
  package let completion: @Sendable (End) -> Void

  package enum Step: Sendable {
    /// Sets or removes what is at the path.
    case write(Draft)
    case abort
    /// It was withdrawn, or its block has failed.
    case ended
  }

  package enum End: Sendable {
    /// What is there now.
    case committed(Node)
    /// What the block got.
    case aborted(Node)
    case failed(DatabaseError)
  }
}

/// What a remote says to the database that it belongs to.
package protocol RemoteObserver: AnyObject, Sendable {
  /// What is known of a target has changed. The changes of one target come in order.
  func changed(_ target: QueryTarget, _ known: Known)
  /// A target is shown no more: its listeners end.
  func ended(_ target: QueryTarget, _ error: DatabaseError)
  /// What changes have called for is done. Called under no lock.
  func handOver()
  /// A line for the log.
  func log(_ message: String)
  /// An error of which no operation learns.
  func report(_ error: DatabaseError)
  /// What `.info` says has changed.
  func showInfo(isConnected: Bool, timeOffset: Int64, isAuthenticated: Bool)
}

extension Remote {
  func read(_ target: QueryTarget) async throws(DatabaseError) -> Node {
    try await withUnsafeContinuation { continuation in
      read(target) { continuation.resume(returning: $0) }
    }.get()
  }

  func write(_ draft: Draft) async throws(DatabaseError) {
    let error = await withUnsafeContinuation { continuation in
      write(draft) { continuation.resume(returning: $0) }
    }
    if let error { throw error }
  }
}
