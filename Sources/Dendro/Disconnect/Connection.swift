import DendroEngine
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

/// Whether a database counts as online, and the operations to be written when it goes offline.
///
/// There is no network: the state is what the program says by `goOffline()` and `goOnline()`, and
/// reading and writing go on in either.
///
/// Locks: the hub's lock may be taken while this one is held, never the other way round; the engine's
/// admission lock is never taken under it.
final class Connection: Sendable {
  private let state = Mutex(State())
  /// Whether the database was used: a reference was made, or it was set online or offline. Settings are
  /// refused from then on.
  private let used = Atomic<Bool>(false)
  /// To wait for those calls.
  private let submissions = DispatchGroup()
  /// Writes of operations whose outcome is not known yet.
  private let unsettledWrites = DispatchGroup()

  fileprivate struct State {
    var isOnline = true
    /// Whether the database is closing: no operation is registered any more.
    var isEnded = false
    var operations = DisconnectOperations()
    /// Calls that have taken operations, and have not given them to the engine yet.
    var submissionCount = 0
    /// Whether some of the operations come from a write that was refused.
    var hasRefused = false
    /// What `.info` says of the connection to a server; nil where there is none.
    var remoteInfo: Node?
    var timeOffset: Int64 = 0
  }

  // MARK: First use

  var isInUse: Bool { used.load(ordering: .relaxed) }

  func noteUse() {
    if !isInUse { used.store(true, ordering: .relaxed) }
  }

  // MARK: Online and offline

  /// - Parameter changed: called with the new `.info` if the state changed, under the lock.
  func goOnline(_ changed: (Node) -> Void) {
    state.withLock { state in
      guard !state.isOnline else { return }
      state.isOnline = true
      changed(Self.info(isOnline: true))
    }
  }

  /// Writes what was registered. What is refused is registered again, below what was registered since,
  /// and written by the next `goOffline()` or at the end.
  ///
  /// - Parameters:
  ///   - changed: called with the new `.info` if the state changed, under the lock.
  ///   - released: called once the lock is released, before the operations are written.
  func goOffline(
    _ engine: Engine, refused: @escaping @Sendable (EngineError) -> Void,
    _ changed: (Node) -> Void, released: () -> Void
  ) {
    let taken = state.withLock { state -> DisconnectOperations? in
      guard state.isOnline || state.hasRefused, !state.isEnded else { return nil }
      if state.isOnline {
        state.isOnline = false
        changed(Self.info(isOnline: false))
      }
      guard !state.operations.isEmpty else { return nil }
      state.submissionCount += 1
      submissions.enter()
      unsettledWrites.enter()
      return state.takeOperations()
    }
    released()
    guard let taken else { return }
    defer {
      state.withLock { $0.submissionCount -= 1 }
      submissions.leave()
    }
    guard let draft = taken.draft else { return settle(.success(nil), taken) }
    engine.submit(draft) { [self] result in
      if case .failure(let error) = result { refused(error) }
      settle(result, taken)
    }
  }

  private func settle(
    _ result: Result<LogSequenceNumber?, EngineError>, _ taken: DisconnectOperations
  ) {
    state.withLock { state in
      guard case .failure = result else { return }
      var operations = taken
      if let since = state.operations.draft { operations.add(since) }
      state.operations = operations
      state.hasRefused = true
    }
    unsettledWrites.leave()
  }

  var isOnline: Bool { state.withLock { $0.isOnline } }

  /// How many milliseconds a server's clock is ahead, as far as that is known.
  var timeOffset: Int64 { state.withLock { $0.timeOffset } }

  /// Runs `body` on a tree that has only `.info`, while it cannot change.
  func withInfo<R: Sendable>(_ body: (borrowing Node) -> R) -> R {
    state.withLock { body($0.remoteInfo ?? Self.info(isOnline: $0.isOnline)) }
  }

  /// Says of the connection to a server how it is now.
  ///
  /// - Parameters:
  ///   - timeOffset: how many milliseconds the server's clock is ahead.
  ///   - changed: called with the new `.info`, under the lock.
  func show(
    isConnected: Bool, timeOffset: Int64, isAuthenticated: Bool, _ changed: (Node) -> Void
  ) {
    state.withLock { state in
      let info = Self.tree([
        ("connected", .bool(isConnected)), ("serverTimeOffset", .integer(timeOffset)),
        ("authenticated", .bool(isAuthenticated)),
      ])
      state.remoteInfo = info
      state.timeOffset = timeOffset
      changed(info)
    }
  }

  private static func info(isOnline: Bool) -> Node { isOnline ? onlineInfo : offlineInfo }

  private static let onlineInfo = tree(connected: true)
  private static let offlineInfo = tree(connected: false)

  private static func tree(connected: Bool) -> Node {
    tree([("connected", .bool(connected)), ("serverTimeOffset", .integer(0))])
  }

  private static func tree(_ values: [(name: String, value: Scalar)]) -> Node {
    var root = Node.empty
    for (name, value) in values {
      guard let key = try? Key(name) else { preconditionFailure("\(name) is no key") }
      root.graft(Node(value), at: Path.info.appending(key))
    }
    return root
  }

  // MARK: Operations

  func add(_ draft: Draft) throws(DatabaseError) { try change { $0.add(draft) } }

  /// - Returns: whether there was room for it.
  func add(_ draft: Draft, upTo byteLimit: Int) throws(DatabaseError) -> Bool {
    var hasRoom = false
    try change { hasRoom = $0.add(draft, upTo: byteLimit) }
    return hasRoom
  }

  /// - Returns: whether there was room for the parts of a value that stay.
  func cancel(_ path: Path, upTo byteLimit: Int) throws(DatabaseError) -> Bool {
    var hasRoom = false
    try change { hasRoom = $0.cancel(path, upTo: byteLimit) }
    return hasRoom
  }

  var operations: DisconnectOperations { state.withLock { $0.operations } }

  func cancel(_ path: Path) throws(DatabaseError) { try change { $0.cancel(path) } }

  /// Replaces the operations, unless they have been taken to be written at the end.
  func reset(to operations: DisconnectOperations) { try? change { $0 = operations } }

  /// - Throws: `.closed` if what was registered has been taken to be written at the end.
  private func change(_ body: (inout DisconnectOperations) -> Void) throws(DatabaseError) {
    let isEnded = state.withLock { state in
      if !state.isEnded { body(&state.operations) }
      return state.isEnded
    }
    if isEnded { throw .closed }
  }

  /// Takes the operations to be written when the database is closed; none can be registered after it.
  ///
  /// Waits until the engine has the operations of earlier calls, and then, for a second at most, for their
  /// results: those that were refused are taken again. The time is limited because `goOffline()` and
  /// `close()` may both be called by a transaction's block, whose writes the engine admits only when it
  /// closes.
  func end(_ engine: Engine) -> Draft? {
    if engine.isInTransaction { return takeLast() }
    repeat {
      submissions.wait()
      _ = unsettledWrites.wait(timeout: .now() + .seconds(1))
    } while !endIfQuiet()
    return takeLast()
  }

  /// Registers nothing any more, unless operations are on their way to the engine: it must have them before it closes.
  private func endIfQuiet() -> Bool {
    state.withLock { state in
      state.isEnded = state.submissionCount == 0
      return state.isEnded
    }
  }

  /// Takes the operations without waiting for the results of earlier ones; none can be registered after it.
  func takeLast() -> Draft? {
    state.withLock { state in
      state.isEnded = true
      return state.takeOperations().draft
    }
  }
}

extension Connection.State {
  fileprivate mutating func takeOperations() -> DisconnectOperations {
    defer {
      operations = DisconnectOperations()
      hasRefused = false
    }
    return operations
  }
}
