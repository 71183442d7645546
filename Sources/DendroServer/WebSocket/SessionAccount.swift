import Synchronization

/// What one session makes the server hold, in bytes.
///
/// A message that the session sends, and what is registered for its end, have bounds of their own: they are exempt from
/// that of the session.
final class SessionAccount: Sendable {
  private struct State {
    var byteCount = 0
    var exemptByteCount = 0
    var isClosed = false
  }

  let address: ClientAddress
  /// Whether the client has signed in.
  let isUser = Atomic<Bool>(false)
  private let limit: Int
  private let accounts: SessionAccounts
  private let state = Mutex(State())

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

  /// Begins to count what is held by what carries the session, which may be closed for it.
  func open(_ transport: any WireTransport) { accounts.register(transport) }

  /// The session is gone, with all that it had.
  func close() {
    let byteCount = state.withLock { state in
      state.isClosed = true
      defer { state.byteCount = 0 }
      return state.byteCount
    }
    accounts.add(-byteCount)
    accounts.remove(self)
  }
}
