import DendroProtocol
import Dispatch
import Synchronization

/// Answers requests for `/.lp`, and keeps the connections that they make up.
final class PollService: Sendable {
  private let state = Mutex(State())
  private let limits: WireLimits
  private let patience: PollConnection.Patience
  private let figures: ServerFigures

  private struct State {
    var connections: [String: PollConnection] = [:]
    var isEnded = false
  }

  init(_ options: DatabaseServerOptions, _ figures: ServerFigures) {
    limits = WireLimits(options)
    patience = PollConnection.Patience(
      hold: options.pollHold, silence: options.pollSilence,
      start: min(options.firstPollTimeout, options.pollSilence))
    self.figures = figures
  }

  var count: Int { state.withLock { $0.connections.count } }

  /// The polls that wait for a message.
  var heldCount: Int { all.reduce(0) { $0 + $1.heldCount } }

  private var all: [PollConnection] { state.withLock { Array($0.connections.values) } }

  func perform(_ request: PollRequest, _ exchange: Exchange, _ service: RESTService) {
    switch request {
    case .start(let start):
      service.note(start.namespace, exchange)
      if let open = service.namespaces.open(start.namespace) {
        return begin(start, exchange, open, service)
      }
      service.workers.async { [self] in
        do {
          begin(
            start, exchange, try service.namespace(start.namespace, for: .anonymous), service)
        } catch {
          exchange.finish(RESTAnswer(RESTError(error)))
        }
      }
    case .poll(let key, let serial, let segments):
      guard let connection = connection(key) else { return Self.refuse(exchange) }
      exchange.namespace = connection.namespace
      connection.poll(serial, segments, exchange)
    case .page(let key):
      guard connection(key) != nil else { return Self.refuse(exchange) }
      exchange.finish(
        RESTAnswer(page: PollText.page(key), type: "text/html; charset=utf-8"))
    case .end(let key):
      connection(key)?.leave()
      Self.refuse(exchange)
    }
  }

  /// A client without a session leaves: its script runs only with the status of success.
  private static func refuse(_ exchange: Exchange) {
    exchange.finish(RESTAnswer(script: PollText.close))
  }

  private func connection(_ key: PollKey) -> PollConnection? {
    let connection = state.withLock { $0.connections[key.id] }
    return connection?.key.password == key.password ? connection : nil
  }

  private func begin(
    _ start: PollStart, _ exchange: Exchange, _ lease: NamespaceLease, _ service: RESTService
  ) {
    service.sessions.end(start.lastSession, in: lease.namespace) { [self] in
      answer(start, exchange, lease, service)
    }
  }

  private func answer(
    _ start: PollStart, _ exchange: Exchange, _ lease: NamespaceLease, _ service: RESTService
  ) {
    if let error = service.sessions.refusal(exchange.clientAddress) {
      return exchange.finish(RESTAnswer(error))
    }
    let key = PollKey(id: WireSessions.makeID(), password: WireSessions.makeID())
    let connection = PollConnection(
      key, service, limits, patience, service.sessions.account(exchange.clientAddress), figures)
    let session = WireSession(lease.namespace.makeSessionID(), lease, service, connection)
    connection.begin(session)
    let isEnded = state.withLock { state in
      if !state.isEnded { state.connections[key.id] = connection }
      return state.isEnded
    }
    guard !isEnded, service.sessions.add(session, exchange.clientAddress) else {
      connection.end()
      return exchange.finish(RESTAnswer(RESTError(503, "There is no place for another session.")))
    }
    let hello = session.hello(host: start.host)
    exchange.finish(
      RESTAnswer(script: PollText.start(key, callback: start.callback, hello: hello)))
  }

  func remove(_ connection: PollConnection) {
    state.withLock { _ = $0.connections.removeValue(forKey: connection.key.id) }
  }

  /// Looks for polls and sessions that have waited long enough.
  func tick() {
    let now = ContinuousClock.now
    for connection in all { connection.tick(now) }
  }

  /// Ends all sessions, and begins none.
  func end() {
    state.withLock { $0.isEnded = true }
    for connection in all { connection.end() }
  }
}
