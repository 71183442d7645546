import DendroEngine
import DendroProtocol
import DendroStorage
import DendroTree
import Dispatch
import Synchronization

// Listens and readings of one client.

extension WireSession {
  /// The most listens of one client.
  private static let listenLimit = 100_000

  /// Whether a location may be read, in the state of this moment.
  func verdict(_ location: WireLocation, by identity: Identity) -> AuthorizationVerdict {
    rights.verdict(
      reading: location.path, location.query, by: identity, on: namespace.engine.pin())
  }

  /// Whether a listen may go on. Without an index it may: the client is warned.
  func allowsListen(_ location: WireLocation, by identity: Identity) -> Bool {
    switch verdict(location, by: identity).decision {
    case .allow, .noIndex: true
    case .deny, .tooLarge: false
    }
  }

  /// Why a location cannot be read; nil if it can.
  func refusal(ofReading path: Path, _ query: QueryParameters?) -> RESTError? {
    RESTError(
      reading: rights.verdict(
        reading: path, query, by: identity, on: namespace.engine.pin()))
  }

  var identity: Identity { state.withLock { $0.authentication.identity } }

  /// - Parameter then: called once the listen has begun, or was refused.
  func listen(
    _ location: WireLocation, _ hash: String, since: UInt64?, _ number: Int64,
    then: @escaping @Sendable () -> Void
  ) {
    let judged = state.withLock { ($0.authentication, $0.authenticationCount) }
    let verdict = verdict(location, by: judged.0.identity)
    var lacksIndex = false
    switch verdict.decision {
    case .allow: break
    case .noIndex: lacksIndex = true
    case .deny:
      refuse(number, .permissionDenied)
      return then()
    case .tooLarge:
      refuse(number, .readTooLarge)
      return then()
    }
    // From here on all of it is in memory, and the states that the listen gets are whole.
    guard let node = read(location, number) else { return then() }
    if !location.isShallow, service.readLimit.isExceeded(by: node, location.query) {
      refuse(number, .readTooLarge)
      return then()
    }
    let start = { @Sendable [self, lacksIndex] (known: KnownValue?) in
      let listen = WireListen(
        location, known: known, lacksIndex: lacksIndex, tellsLSN: since != nil, self)
      begin(listen, at: location, number, judgedAt: judged.1)
      then()
    }
    // Found before the listen begins: the queue on which it does serves all clients of the database.
    if hash.isEmpty { return start(.all(.empty)) }
    let shown = node.filtered(by: location.query)
    let present = TreeHash.hash(shown)
    if present == hash { return start(.all(shown)) }
    guard let since, OutdatedValue.isWorthwhile(node, location, since: since) else {
      return start(nil)
    }
    // It may wait for the disk.
    service.workers.async { [self] in
      let known = OutdatedValue(
        node, present, at: location.path, in: namespace.engine, since: since,
        tellsRemoved: self.verdict(WireLocation(.root), by: judged.0.identity).decision == .allow,
        isCancelled: { state.withLock { $0.isEnded } })
      if known != nil { service.figures.noteResumedListen() }
      start(known.map { .outdated($0) })
    }
  }

  /// - Parameter authenticationCount: of the client who was allowed to listen.
  private func begin(
    _ new: WireListen, at location: WireLocation, _ number: Int64,
    judgedAt authenticationCount: Int
  ) {
    let (old, isFull) = state.withLock { state -> (WireListen?, Bool) in
      if state.isEnded { return (nil, true) }
      guard state.listens.count < Self.listenLimit,
        !connection.account.isExceeded(by: location.byteCount)
      else { return (nil, true) }
      connection.account.add(location.byteCount)
      let old = state.listens[location]
      state.listens[location] = new
      return (old, false)
    }
    guard !isFull else { return refuse(number, RESTError(503, "too many listens")) }
    old?.stop(namespace.hub)
    new.begin(number, namespace.hub)
    // It was judged as another client's.
    if state.withLock({ $0.authenticationCount }) != authenticationCount { reauthorize() }
  }

  /// What is at the location; nil if it cannot be read: the client has got the error.
  func read(_ location: WireLocation, _ number: Int64) -> Node? {
    do throws(EngineError) {
      return try namespace.engine.view(at: location.path)
    } catch {
      refuse(number, RESTError(error))
      return nil
    }
  }

  /// Tells the last write, behind the pushes for it and for those before.
  func tellLSN(_ number: Int64) {
    let lsn = namespace.engine.statistics().lastLSN.rawValue
    afterEvents { $0.answer(number, .json("{\"lsn\":\(lsn)}")) }
  }

  /// Whether what is at the location may be more than may be shown. What is not in memory is looked at where it is read.
  func mayBeTooLarge(_ location: WireLocation) -> Bool {
    guard !location.isShallow, namespace.isLoaded else { return false }
    return (try? namespace.engine.view(at: location.path)).map(service.readLimit.isNear) ?? false
  }

  func unlisten(_ location: WireLocation, _ number: Int64) {
    let listen = state.withLock { $0.listens.removeValue(forKey: location) }
    listen?.stop(namespace.hub)
    answer(number)
  }

  func get(_ location: WireLocation, _ number: Int64) {
    if let refusal = refusal(ofReading: location.path, location.query) {
      return refuse(number, refusal)
    }
    guard read(location, number) != nil else { return }
    // Between the pushes: a client that listens below never sees an older value after a newer one.
    namespace.hub.read(location.path) { [self] node in
      let query = location.query
      if query.map({ node.filteringCost($0) > Listen.costMax }) ?? false {
        return answerInTurn(number) { node.filtered(by: query) }
      }
      let shown = node.filtered(by: query)
      if service.readLimit.isNear(shown) { return answerInTurn(number) { shown } }
      answer(number, .node(shown))
    }
  }

  /// Answers with what takes long to make, at the place among the messages where it belongs now.
  private func answerInTurn(_ number: Int64, _ shown: @escaping @Sendable () -> Node) {
    let place = connection.reserve()
    namespace.turns.async(for: self, at: connection.account.address) { [self] in
      if state.withLock({ $0.isEnded }) { return place.fill([]) }
      let node = shown()
      place.fill([
        service.readLimit.isExceeded(by: node)
          ? WireText.answer(number, status: "too_big", .text(RESTError.readTooLarge.text))
          : WireText.answer(number, status: "ok", .node(node))
      ])
    }
  }

  /// A child as it is now.
  func child(_ key: Key, of path: Path) -> Node {
    (try? namespace.engine.view(at: path.appending(key))) ?? .empty
  }

  var listenCount: Int { state.withLock { $0.listens.count } }

  /// Called by a listen when it has its first value.
  func began(_ number: Int64, _ content: WireText.Content) { answer(number, content) }

  /// - Returns: false if the client is too slow, and the listen has to begin anew.
  func push(_ text: AnswerText, isFirst: Bool) -> Bool {
    connection.send(text, isPush: !isFirst)
  }

  /// A push of the listen was left out.
  func lags(_ listen: WireListen) {
    state.withLock { if !$0.isEnded { $0.lagging[ObjectIdentifier(listen)] = listen } }
    // What waited may have been read meanwhile.
    connection.wake()
  }

  /// The listen has its present value, or has ended.
  func caughtUp(_ listen: WireListen) {
    let held = state.withLock { state -> [@Sendable () -> Void] in
      state.lagging[ObjectIdentifier(listen)] = nil
      guard state.lagging.isEmpty else { return [] }
      defer { state.heldAnswers = [] }
      return state.heldAnswers
    }
    for answer in held { answer() }
  }

  /// The client has read what waited.
  func outboxIsEmpty() {
    let lagging = state.withLock { Array($0.lagging.values) }
    for listen in lagging { listen.catchUp(namespace.hub) }
  }
}
