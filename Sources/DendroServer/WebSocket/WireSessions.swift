import DendroProtocol
import Dispatch
import Synchronization

/// The sessions of a server, by their ids.
final class WireSessions: Sendable {
  /// What the sessions make the server hold.
  let accounts: SessionAccounts
  private let byteLimit: Int
  private let state: Mutex<State>
  private let limit: Int
  private let signInTimeout: Duration
  /// What a guest has to sign in.
  private static let guestTimeout = Duration.seconds(10)

  fileprivate struct State {
    var sessions: [String: WireSession] = [:]
    var seats: SessionSeats
  }

  /// - Parameters:
  ///   - canSignIn: whether clients can sign in.
  init(_ options: DatabaseServerOptions, canSignIn: Bool) {
    let count = options.sessionLimit
    limit = count
    byteLimit = options.sessionByteLimit
    accounts = SessionAccounts(limit: options.sessionsByteLimit)
    signInTimeout = options.signInTimeout
    let seats = SessionSeats(
      SessionSeats.Limits(
        count: count, addressCount: options.addressSessionLimit ?? max(1, count / 4),
        loopbackCount: options.addressSessionLimit ?? count,
        guestCount: canSignIn ? max(1, count / 16) : 0))
    state = Mutex(State(seats: seats))
  }

  var all: [WireSession] { state.withLock { Array($0.sessions.values) } }

  var count: Int { state.withLock { $0.seats.count } }

  subscript(_ id: String) -> WireSession? { state.withLock { $0.sessions[id] } }

  func account(_ address: ClientAddress) -> SessionAccount {
    SessionAccount(address, limit: byteLimit, accounts)
  }

  // MARK: Coming and leaving

  /// Why a client cannot have a session; nil if it can.
  func refusal(_ address: ClientAddress) -> RESTError? {
    guard state.withLock({ $0.seats.refuses(address) }) else { return nil }
    return RESTError(503, "The server has \(limit) sessions, which is its limit.")
  }

  /// Adds a session, which may take the place of another one.
  ///
  /// - Returns: false if there is no place for it.
  func add(_ session: WireSession, _ address: ClientAddress) -> Bool {
    let (isAdded, replaced) = state.withLock { state in
      let decision = state.seats.admit(session.id, address, at: .now)
      if decision == .refused { return (false, nil as WireSession?) }
      state.sessions[session.id] = session
      return (true, state.replaced(by: decision))
    }
    replaced?.connection.drop()
    return isAdded
  }

  /// Another session may have its place.
  func freeSeat(of session: WireSession) { state.withLock { $0.seats.leave(session.id) } }

  func remove(_ session: WireSession) {
    state.withLock { state in
      state.seats.leave(session.id)
      state.sessions[session.id] = nil
    }
  }

  /// Ends the session of a client's connection before this one, to the same database: what was to be written at its end is
  /// written before `body` is called.
  func end(_ id: String?, in namespace: Namespace, then body: @escaping @Sendable () -> Void) {
    guard let id else { return body() }
    // Behind the end of a connection that is gone already.
    namespace.writing.async { [self] in
      if let session = self[id], session.namespace === namespace {
        session.end(then: body)
        return session.close()
      }
      if !namespace.isOwn(session: id) { namespace.endElsewhere(session: id) }
      body()
    }
  }

  // MARK: Who the clients are

  /// Notes that a client asks for something, or that it has become another one.
  ///
  /// - Returns: false if it has no place, and has to leave.
  func note(_ session: WireSession) -> Bool {
    let isUser = session.identity != .anonymous
    let standing: SessionSeats.Standing = isUser ? .user : session.needsUser ? .new : .stranger
    let (decision, replaced) = state.withLock { state in
      let decision = state.seats.change(session.id, to: standing, at: .now)
      return (decision, state.replaced(by: decision))
    }
    replaced?.connection.drop()
    return decision != .refused
  }

  /// Ends the sessions of clients that should have signed in.
  func endOverdue() {
    let now = ContinuousClock.now
    for session in all where session.hasSignedIn.load(ordering: .relaxed) {
      // Its token may have expired.
      if session.identity == .anonymous { session.noteStanding() }
    }
    let (guests, new) = state.withLock { state in
      let guests = state.seats.all(.guest, since: now - Self.guestTimeout)
      let new = state.seats.all(.new, since: now - signInTimeout)
      return (
        guests.compactMap { state.sessions[$0] }, new.compactMap { state.sessions[$0] }
      )
    }
    for session in guests + new.filter(\.needsUser) { session.connection.drop() }
  }

  /// A text that cannot be guessed: letters and digits.
  static func makeID() -> String {
    var random = SystemRandomNumberGenerator()
    return String(random.next(), radix: 36) + String(random.next(), radix: 36)
  }
}

extension WireSessions.State {
  fileprivate func replaced(by decision: SessionSeats.Decision) -> WireSession? {
    if case .replaces(let id) = decision { sessions[id] } else { nil }
  }
}
