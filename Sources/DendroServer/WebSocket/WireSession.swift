import Dendro
import DendroEngine
import DendroPlatform
import DendroProtocol
import DendroStorage
import DendroTree
import Synchronization

/// The dialogue with one client: its listens, its identity, and what it wants written when it leaves.
///
/// Messages are handled on the connection's thread, in their order. Listens push from the hub's queue; answers
/// to writes come from there too, after the writes' events.
final class WireSession: Sendable {
  let id: String
  private let namespace: Namespace
  private let service: RESTService
  private let connection: WebSocketConnection
  private let state = Mutex(State())

  private struct State {
    var identity = Identity.anonymous
    var listens: [WireLocation: WireListen] = [:]
    var operations = DisconnectOperations()
    /// Whether the journal has a file of this session.
    var isJournaled = false
    var isEnded = false
  }

  init(
    _ id: String, _ namespace: Namespace, _ service: RESTService, _ connection: WebSocketConnection
  ) {
    self.id = id
    self.namespace = namespace
    self.service = service
    self.connection = connection
  }

  func begin(host: String) {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let time = Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    connection.send(WireText.hello(time: time, host: host, session: id))
  }

  /// The most listens of one client.
  private static let listenLimit = 100_000

  // MARK: Messages

  /// - Returns: false for what no client sends.
  func handle(_ message: [UInt8]) -> Bool {
    if state.withLock({ $0.isEnded }) { return false }
    switch WireMessage(message) {
    case .malformed: return false
    case .other: break
    case .ping: connection.send(WireText.pong)
    case .request(let request):
      switch request.action {
      case .success(let action): perform(action, request.number, message)
      case .failure(let error): refuse(request.number, error)
      }
    }
    return true
  }

  private func perform(_ action: WireAction, _ number: Int64, _ message: [UInt8]) {
    switch action {
    case .none: answer(number)
    case .listen(let location, let hash): listen(location, hash, number)
    case .unlisten(let location): unlisten(location, number)
    case .get(let location): get(location, number)
    case .write(let draft, let path, let isPriority, let hash):
      write(draft, at: path, isPriority: isPriority, hash, number)
    case .onDisconnect(let draft, let path):
      guard allowsWrite(draft, at: path) else { return refuse(number, .permissionDenied) }
      state.withLock { $0.operations.add(draft) }
      keep(message, number)
    case .cancelOnDisconnect(let path):
      state.withLock { $0.operations.cancel(path) }
      keep(message, number)
    case .signIn(let credentials): signIn(credentials, number)
    case .signOut:
      change(to: .anonymous)
      answer(number)
    }
  }

  // MARK: Answers

  private func answer(_ number: Int64, _ content: WireText.Content = .nothing) {
    connection.send(WireText.answer(number, status: "ok", content))
  }

  private func refuse(_ number: Int64, _ error: RESTError, status: String? = nil) {
    let name =
      switch error {
      case .permissionDenied: "permission_denied"
      case .badToken: "invalid_token"
      default: error.status == 503 ? "unavailable" : "failure"
      }
    connection.send(WireText.answer(number, status: status ?? name, .text(error.text)))
  }

  /// After the events of all commits so far.
  private func afterEvents(_ body: @escaping @Sendable (WireSession) -> Void) {
    namespace.hub.afterEvents { body(self) }
  }

  /// Answers a change of what is to be written at the end once it is on the disk.
  private func keep(_ message: [UInt8], _ number: Int64) {
    guard let journal = namespace.journal else { return answer(number) }
    state.withLock { $0.isJournaled = true }
    journal.append(message, of: id) { isKept in
      if isKept { return self.answer(number) }
      self.refuse(number, RESTError(503, "The operation could not be kept on the disk."))
    }
  }

  // MARK: Listening and reading

  private func allowsRead(_ location: WireLocation, by identity: Identity) -> Bool {
    service.authorizer.allows(
      AuthorizationRequest(
        .read, at: location.path, by: identity, query: location.query, in: namespace.database))
  }

  private var identity: Identity { state.withLock { $0.identity } }

  private func listen(_ location: WireLocation, _ hash: String, _ number: Int64) {
    guard allowsRead(location, by: identity) else { return refuse(number, .permissionDenied) }
    // From here on all of it is in memory, and the states that the listen gets are whole.
    guard read(location, number) != nil else { return }
    let new = WireListen(location, hash, self)
    let (old, isFull) = state.withLock { state -> (WireListen?, Bool) in
      if state.isEnded { return (nil, true) }
      guard state.listens.count < Self.listenLimit else { return (nil, true) }
      let old = state.listens[location]
      state.listens[location] = new
      return (old, false)
    }
    guard !isFull else { return refuse(number, RESTError(503, "too many listens")) }
    old?.stop(namespace.hub)
    new.begin(number, namespace.hub)
  }

  /// What is at the location; nil where it cannot be read, which the client has been told.
  private func read(_ location: WireLocation, _ number: Int64) -> Node? {
    do throws(EngineError) {
      return try namespace.engine.view(at: location.path)
    } catch {
      refuse(number, RESTError(error))
      return nil
    }
  }

  private func unlisten(_ location: WireLocation, _ number: Int64) {
    let listen = state.withLock { $0.listens.removeValue(forKey: location) }
    listen?.stop(namespace.hub)
    answer(number)
  }

  private func get(_ location: WireLocation, _ number: Int64) {
    guard allowsRead(location, by: identity) else { return refuse(number, .permissionDenied) }
    guard let node = read(location, number) else { return }
    answer(number, .node(location.query.map { node.filtered(by: $0) } ?? node))
  }

  /// Called by a listen when it has its first value.
  fileprivate func began(_ number: Int64) { answer(number, .object) }

  /// - Returns: false where the client is too slow, and the listen has to begin anew.
  fileprivate func push(_ text: AnswerText, isFirst: Bool) -> Bool {
    connection.send(text, isPush: !isFirst)
  }

  /// The client has read what waited.
  func outboxIsEmpty() {
    let slow = state.withLock { state in state.listens.values.filter { $0.takeLag() } }
    for listen in slow { listen.restart(namespace.hub) }
  }

  // MARK: Writing

  private func allowsWrite(_ draft: Draft, at path: Path) -> Bool {
    service.authorizer.allows(
      AuthorizationRequest(.write, at: path, by: identity, draft: draft, in: namespace.database))
  }

  private func write(
    _ draft: Draft, at path: Path, isPriority: Bool, _ hash: String?, _ number: Int64
  ) {
    guard allowsWrite(draft, at: path) else { return refuse(number, .permissionDenied) }
    guard let hash else {
      return namespace.engine.submit(draft) { result in
        self.afterEvents { session in
          switch result {
          case .success: session.answer(number)
          case .failure(let error): session.refuse(number, error)
          }
        }
      }
    }
    namespace.database.transact(at: path) { current in
      let compared = isPriority ? current.priority.map { Node($0) } ?? .empty : current
      return TreeHash.hash(compared) == hash ? draft.asSet(over: current) : nil
    } completion: { result in
      self.afterEvents { session in
        switch result {
        case .failure(let error): session.refuse(number, RESTError(error))
        case .success(let outcome) where outcome.isWritten: session.answer(number)
        case .success:
          session.refuse(
            number, .badRequest("Transaction hash does not match"), status: "datastale")
        }
      }
    }
  }

  private func refuse(_ number: Int64, _ error: EngineError) {
    if case .writeTooLarge = error {
      return refuse(number, RESTError(error), status: "too_big")
    }
    refuse(number, RESTError(error))
  }

  // MARK: Signing in

  private func signIn(_ credentials: Credentials, _ number: Int64) {
    do throws(RESTError) {
      let identity = try service.policy.identity(of: credentials)
      change(to: identity)
      var auth = "null"
      if case .user(_, let claims) = identity, credentials.token != nil { auth = claims }
      // Far away: tokens without a signature do not expire.
      answer(number, .json("{\"auth\":\(auth),\"expires\":4102444800}"))
    } catch {
      refuse(number, error, status: "invalid_token")
    }
  }

  /// Judges every listen again.
  private func change(to identity: Identity) {
    let listens = state.withLock { state in
      state.identity = identity
      return state.listens
    }
    for (location, listen) in listens where !allowsRead(location, by: identity) {
      state.withLock { $0.listens[location] = nil }
      listen.stop(namespace.hub)
      connection.send(WireText.cancel(location.path, query: location.queryText))
    }
  }

  // MARK: The end

  /// Closes the connection, whose end ends the session.
  func close() { connection.close(1000) }

  /// The connection is gone: writes what was to be written then.
  func end() {
    let (listens, operations, identity, isJournaled) = state.withLock { state in
      state.isEnded = true
      defer {
        state.listens = [:]
        state.operations = DisconnectOperations()
        state.isJournaled = false
      }
      return (state.listens, state.operations, state.identity, state.isJournaled)
    }
    let journal = isJournaled ? namespace.journal : nil
    for listen in listens.values { listen.stop(namespace.hub) }
    service.webSockets.remove(self)
    guard let draft = operations.draft, case .update(let base, let entries) = draft.write else {
      journal?.remove(id)
      return
    }
    // Judged again, one by one, by the rules of this moment.
    let allowed = entries.filter { entry in
      service.authorizer.allows(
        AuthorizationRequest(
          .write, at: entry.path, by: identity,
          draft: Draft(.update(base, [entry]), deferred: draft.deferred), in: namespace.database))
    }
    let id = id
    namespace.engine.submit(Draft(.update(base, allowed), deferred: draft.deferred)) { result in
      // Otherwise it is written when the database is served again.
      if case .success = result { journal?.remove(id) }
    }
  }
}

/// One listen of a session.
private final class WireListen: ListenReceiver {
  private let location: WireLocation
  private let hash: String
  private let session: WireSession
  private let state = Mutex(State())

  private struct State {
    var listen: Listen?
    /// The request that is answered when the first value is known.
    var number: Int64?
    /// Whether changes were left out, since the client is too slow.
    var isLagging = false
    var isRestarting = false
    var isStopped = false
  }

  init(_ location: WireLocation, _ hash: String, _ session: WireSession) {
    self.location = location
    self.hash = hash
    self.session = session
  }

  func begin(_ number: Int64, _ hub: ListenHub) {
    let listen = Listen(location.path, location.query, self)
    state.withLock { state in
      state.listen = listen
      state.number = number
    }
    hub.register(listen)
  }

  func restart(_ hub: ListenHub) {
    if let listen = state.withLock({ $0.listen }) { hub.restart(listen) }
  }

  func stop(_ hub: ListenHub) {
    let listen = state.withLock { state in
      state.isStopped = true
      defer { state.listen = nil }
      return state.listen
    }
    if let listen { hub.unregister(listen) }
  }

  /// - Returns: whether changes were left out, and the caller has to restart the listen.
  func takeLag() -> Bool {
    state.withLock { state in
      guard state.isLagging, !state.isRestarting else { return false }
      state.isRestarting = true
      return true
    }
  }

  // MARK: Events

  func begin(_ node: Node, lsn: UInt64) {
    let (number, isStopped) = state.withLock { state in
      defer {
        state.number = nil
        state.isLagging = false
        state.isRestarting = false
      }
      return (state.number, state.isStopped)
    }
    // What the client has already is not sent again.
    let isKnown = number != nil && (hash.isEmpty ? node.isEmpty : TreeHash.hash(node) == hash)
    if !isKnown, !isStopped {
      // Before the answer, and hence whatever waits already.
      push(
        WireText.push(.put(.root, node), at: location.path, tag: location.tag),
        isFirst: number != nil)
    }
    if let number { session.began(number) }
  }

  private struct Form: Hashable, Sendable {
    let tag: Int64?
  }

  func receive(_ update: ListenUpdate) {
    if state.withLock({ $0.isStopped || $0.isLagging }) { return }
    push(
      update.text(Form(tag: location.tag)) { change in
        WireText.push(change, at: location.path, tag: location.tag)
      })
  }

  func end() {}

  private func push(_ text: AnswerText, isFirst: Bool = false) {
    if !session.push(text, isFirst: isFirst) { state.withLock { $0.isLagging = true } }
  }
}
