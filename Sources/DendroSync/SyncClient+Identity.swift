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
    /// Whether the source has given a token.
    private var hasGiven = false
    /// Whether there is a token that was not refused.
    private(set) var hasToken = false
    /// Whether the server has taken it, over the present connection.
    var isSignedIn = false
    /// Tokens that were refused one after the other.
    var refusalCount = 0
    /// Askings that failed one after the other.
    var failureCount = 0
    var limits = TokenLimits()

    var isAdministrator = false

    /// Whether a connection may be made: not before there is a token, if there is to be one.
    var mayConnect: Bool { source == nil || hasToken }

    /// Whether so many tokens were refused that the next connection has time.
    var isHopeless: Bool { refusalCount >= limits.refusalCountMax }

    /// There is a token.
    ///
    /// - Returns: whether a connection is made with it at once. After a refusal it is made after a pause: the next token
    ///   may be as bad.
    mutating func noteToken() -> Bool {
      defer { hasGiven = true }
      hasToken = true
      failureCount = 0
      return !hasGiven
    }

    /// The server does not take the token, or not any more.
    mutating func noteRefusal(_ status: String) {
      isSignedIn = false
      hasToken = false
      if status != "expired_token" { refusalCount += 1 }
    }

    /// Ends it once the lock is released: the source and its task are the application's.
    mutating func end(_ due: inout Due) {
      let old = self
      due.calls.append {
        old.task?.cancel()
        withExtendedLifetime(old) {}
      }
      self = Identity()
      number = old.number + 1
      limits = old.limits
    }
  }

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
      let isFirst = state.identity.noteToken()
      if case .administrator = token.kind { state.identity.isAdministrator = true }
      let user = SyncUser(token)
      perform(state.dialogue.signIn(SyncCredential(token), as: user), &state, &due)
      if user != .unknown { state.store?.lastUser = user }
      change(user: user, &state, &due)
      // The server may have refused these listens to the user before.
      for target in mirror { perform(state.dialogue.begin(target, for: .kept), &state, &due) }
      if let delay = state.identity.limits.renewal(of: token, at: state.time) {
        ask(after: delay, &state, &due)
      }
      due.wakes = true
      if isFirst, !state.isConnected { due.command = .connect }
    }
  }

  private func noteFailure(_ error: any Error, _ number: Int) {
    step { state, due in
      guard state.identity.number == number else { return }
      log("no token could be got: \(error)", &due)
      state.identity.failureCount += 1
      ask(
        after: state.identity.limits.delay(afterFailures: state.identity.failureCount), &state,
        &due)
    }
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
    state.identity.noteRefusal(refusal.status)
    leave(&state, &due)
    log("the server does not take the token: \(refusal.status): \(refusal.text)", &due)
    // The next one is signed in by when it comes.
    perform(state.dialogue.signIn(nil), &state, &due)
    due.command = state.identity.isHopeless ? .reconnectLate : .reconnect
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
