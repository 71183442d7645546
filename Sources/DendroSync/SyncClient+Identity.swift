import Dendro
import DendroProtocol
import Synchronization

// Who the client is. The tokens come from the application, which is asked before the client connects, before a token
// expires, and after one was refused.

extension SyncClient {
  struct Identity: Sendable {
    var source: TokenSource?
    /// The task that asks the source now, or will.
    var task: Task<Void, Never>?
    /// The number of the last asking; answers to earlier ones do not count.
    var number = 0
    /// Whether there is a token that was not refused.
    var hasToken = false
    /// Whether the server has taken it, over the present connection.
    var isSignedIn = false
    /// Tokens that were refused one after the other.
    var refusalCount = 0
    /// Askings that failed one after the other.
    var failureCount = 0

    var isAdministrator = false

    /// Whether a connection may be made: not before there is a token, if there is to be one.
    var mayConnect: Bool { source == nil || hasToken }

    /// Ends it once the lock is released: the source and its task are the application's.
    mutating func end(_ due: inout Due) {
      let old = self
      due.calls.append {
        old.task?.cancel()
        withExtendedLifetime(old) {}
      }
      self = Identity(number: number + 1)
    }
  }

  /// So many refused tokens, and the client connects as seldom as it may.
  private static let refusalCountMax = 3
  /// A token is asked for so long before the one there is expires.
  private static let renewal = Duration.seconds(300)
  private static let leastRenewal = Duration.seconds(10)

  func authenticate(_ source: TokenSource?) {
    step { state, due in
      state.identity.end(&due)
      if state.isClosed { return }
      state.identity.source = source
      if source != nil {
        // As long as it is not known who that is, it is the user who was here last.
        change(user: state.store?.lastUser ?? .unknown, &state, &due)
        ask(after: nil, &state, &due)
        // A connection that is being made waits for the token, and so does one over which nothing goes yet.
        if !state.isConnected || state.dialogue.wantsNothing {
          leave(&state, &due)
          due.command = .disconnect
        }
        return
      }
      state.store?.lastUser = nil
      // The server knows of it before it gets writes of nobody.
      perform(state.dialogue.signIn(nil), &state, &due)
      change(user: .anonymous, &state, &due)
      showInfo(state)
      if !state.isConnected { due.command = .connect }
    }
  }

  private func change(user: SyncUser, _ state: inout State, _ due: inout Due) {
    perform(state.dialogue.change(user: user), &state, &due)
    endWaiting(&state, &due)
  }

  private func ask(after delay: Duration?, _ state: inout State, _ due: inout Due) {
    let old = state.identity.task
    due.calls.append { old?.cancel() }
    state.identity.number += 1
    guard let source = state.identity.source else { return }
    let number = state.identity.number
    state.identity.task = Task { [weak self] in
      if let delay { try? await Task.sleep(for: delay) }
      if Task.isCancelled { return }
      do {
        self?.take(try await source(), number)
      } catch {
        self?.noteFailure(error, number)
      }
    }
  }

  private func take(_ token: DatabaseToken, _ number: Int) {
    step { state, due in
      guard state.identity.number == number else { return }
      let isFirst = !state.identity.hasToken && state.identity.refusalCount == 0
      state.identity.hasToken = true
      state.identity.failureCount = 0
      if case .administrator = token.kind { state.identity.isAdministrator = true }
      let user = SyncUser(token)
      perform(state.dialogue.signIn(SyncCredential(token), as: user), &state, &due)
      if user != .unknown { state.store?.lastUser = user }
      change(user: user, &state, &due)
      if let rest = Self.rest(of: token) {
        ask(after: max(Self.leastRenewal, rest - Self.renewal), &state, &due)
      }
      due.wakes = true
      if isFirst, !state.isConnected { due.command = .connect }
    }
  }

  private func noteFailure(_ error: any Error, _ number: Int) {
    step { state, due in
      guard state.identity.number == number else { return }
      log("no token could be got: \(error)", &due)
      state.identity.failureCount = min(state.identity.failureCount + 1, 6)
      ask(after: .seconds(1 << state.identity.failureCount), &state, &due)
    }
  }

  /// How long a token holds; nil if it does not say so.
  private static func rest(of token: DatabaseToken) -> Duration? {
    guard case .user(let text) = token.kind,
      let token = IDToken(text), token.algorithm != "none", let end = token.time("exp")
    else { return nil }
    return .seconds(max(0, min(max(end, 0), 1 << 40) - clock() / 1000))
  }

  // MARK: What the server says

  func noteSignedIn(_ refusal: SyncRefusal?, _ state: inout State, _ due: inout Due) {
    guard let refusal else {
      state.identity.isSignedIn = true
      state.identity.refusalCount = 0
      return showInfo(state)
    }
    dropToken(refusal, &state, &due)
  }

  func noteRevoked(_ refusal: SyncRefusal, _ state: inout State, _ due: inout Due) {
    dropToken(refusal, &state, &due)
  }

  /// Asks for another token, and connects again with it.
  private func dropToken(
    _ refusal: SyncRefusal, _ state: inout State, _ due: inout Due
  ) {
    state.identity.isSignedIn = false
    state.identity.hasToken = false
    if refusal.status != "expired_token" { state.identity.refusalCount += 1 }
    leave(&state, &due)
    let isHopeless = state.identity.refusalCount >= Self.refusalCountMax
    log("the server does not take the token: \(refusal.status): \(refusal.text)", &due)
    // The next one is signed in by when it comes.
    perform(state.dialogue.signIn(nil), &state, &due)
    due.command = isHopeless ? .reconnectLate : .reconnect
    ask(after: nil, &state, &due)
  }
}

extension SyncCredential {
  fileprivate init(_ token: DatabaseToken) {
    switch token.kind {
    case .user(let token): self = .user(token: token)
    case .administrator(let token): self = .administrator(token: token, override: nil)
    }
  }
}

extension SyncUser {
  /// Whose token it is.
  fileprivate init(_ token: DatabaseToken) {
    switch token.kind {
    case .user(let text): self = IDToken(text)?.userID.map { .user($0) } ?? .unknown
    case .administrator: self = .administrator
    }
  }
}
