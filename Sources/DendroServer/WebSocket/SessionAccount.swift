import Synchronization

/// What one session makes the server hold, in bytes.
///
/// A message that the session sends, and what is registered for its end, have bounds of their own: they are exempt from
/// that of the session.
final class SessionAccount: Sendable {
  private struct State {
    var byteCount = 0
    var exemptByteCount = 0
    /// The messages that wait and what is registered for the end: the session has them until its last write is made, also
    /// when the connection is gone.
    var ownByteCount = 0
    var isClosed = false
    /// Whether there is no session, or it has made its last write.
    var isSessionOver = true
  }

  let address: ClientAddress
  /// Whether the client has signed in.
  let isUser = Atomic<Bool>(false)
  private let limit: Int
  private let accounts: SessionAccounts
  private let state = Mutex(State())
  private let session = Mutex(WeakSession())

  private struct WeakSession: Sendable { weak var value: WireSession? }

  init(_ address: ClientAddress, limit: Int, _ accounts: SessionAccounts) {
    self.address = address
    self.limit = limit
    self.accounts = accounts
  }

  /// All that is held.
  var byteCount: Int { state.withLock { $0.byteCount } }

  /// Whether so much more would be above the bound of the session.
  func isExceeded(by count: Int) -> Bool {
    state.withLock { $0.byteCount - $0.exemptByteCount + count > limit }
  }

  /// Notes that the session has so much more, or less.
  func add(_ count: Int, isExempt: Bool = false) {
    if count == 0 { return }
    let isOpen = state.withLock { state in
      if state.isClosed { return false }
      state.byteCount += count
      if isExempt { state.exemptByteCount += count }
      return true
    }
    if isOpen { accounts.add(count) }
  }

  /// Notes that so much more, or less, waits in the session or is registered for its end, which is exempt.
  func addOwn(_ count: Int) {
    if count == 0 { return }
    state.withLock { state in
      state.byteCount += count
      state.exemptByteCount += count
      state.ownByteCount += count
    }
    accounts.add(count)
  }

  /// Begins to count what is held by what carries the session, which may be closed for it.
  func open(_ transport: any WireTransport) { accounts.register(transport) }

  /// Notes whose account this is. It is kept until `finish`.
  func belongs(to session: WireSession) {
    self.session.withLock { $0.value = session }
    state.withLock { $0.isSessionOver = false }
  }

  /// The session has made its last write, and has nothing any more.
  func finish() {
    let isClosed = state.withLock { state in
      state.isSessionOver = true
      return state.isClosed
    }
    if isClosed { accounts.remove(self) }
  }

  /// Makes the session give up what it has not looked at.
  func relieve() { session.withLock { $0.value }?.giveUpMessages() }

  /// What carries the session is gone, with all that it had.
  func close() {
    let (byteCount, isOver) = state.withLock { state in
      state.isClosed = true
      defer { state.byteCount = state.ownByteCount }
      return (state.byteCount - state.ownByteCount, state.isSessionOver && state.ownByteCount == 0)
    }
    accounts.add(-byteCount)
    if isOver { accounts.remove(self) }
  }
}
