import DendroEngine
import DendroTree
import Synchronization

/// Whether a database counts as online, and what is to be written when it no longer does.
///
/// There is no network: the state is what the program says by `goOffline()` and `goOnline()`, and
/// reading and writing go on in either.
///
/// Locks: the hub's lock may be taken while this one is held, never the other way round; the engine's
/// admission lock is never taken under it.
final class Connection: Sendable {
  private let state = Mutex(State())
  /// Whether a reference was made, or the connection touched: settings come too late then.
  private let used = Atomic<Bool>(false)

  private struct State {
    var isOnline = true
    /// Nothing is registered any more.
    var isEnded = false
    var operations = DisconnectOperations()
  }

  // MARK: First use

  var isInUse: Bool { used.load(ordering: .relaxed) }

  func noteUse() {
    if !isInUse { used.store(true, ordering: .relaxed) }
  }

  // MARK: Online and offline

  /// - Parameter changed: told the new `.info` where the state changed, under the lock.
  /// - Returns: what is to be written now.
  func set(online: Bool, _ changed: (Node) -> Void) -> Draft? {
    state.withLock { state in
      guard state.isOnline != online else { return nil }
      state.isOnline = online
      changed(Self.info(isOnline: online))
      return online ? nil : state.operations.take()
    }
  }

  /// Runs `body` on a tree that has only `.info`, while it cannot change.
  func withInfo<R: Sendable>(_ body: (borrowing Node) -> R) -> R {
    state.withLock { body(Self.info(isOnline: $0.isOnline)) }
  }

  private static func info(isOnline: Bool) -> Node { isOnline ? onlineInfo : offlineInfo }

  private static let onlineInfo = tree(connected: true)
  private static let offlineInfo = tree(connected: false)

  private static func tree(connected: Bool) -> Node {
    var root = Node.empty
    for (name, value) in [
      ("connected", Scalar.bool(connected)), ("serverTimeOffset", Scalar.integer(0)),
    ] {
      guard let key = try? Key(name) else { preconditionFailure("\(name) is no key") }
      root.graft(Node(value), at: Path.info.appending(key))
    }
    return root
  }

  // MARK: Operations

  func add(_ draft: Draft) throws(DatabaseError) { try change { $0.add(draft) } }

  func cancel(_ path: Path) throws(DatabaseError) { try change { $0.cancel(path) } }

  /// - Throws: `.closed` where what was registered has been taken to be written at the end.
  private func change(_ body: (inout DisconnectOperations) -> Void) throws(DatabaseError) {
    let isEnded = state.withLock { state in
      if !state.isEnded { body(&state.operations) }
      return state.isEnded
    }
    if isEnded { throw .closed }
  }

  /// What is to be written at the end; nothing is registered after it.
  func end() -> Draft? {
    state.withLock { state in
      state.isEnded = true
      return state.operations.take()
    }
  }
}

extension DisconnectOperations {
  /// All operations as one write, and forgets them.
  fileprivate mutating func take() -> Draft? {
    defer { self = DisconnectOperations() }
    return draft
  }
}
