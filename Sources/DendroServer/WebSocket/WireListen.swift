import DendroProtocol
import DendroTree
import Synchronization

/// One listen of a session.
final class WireListen: ListenReceiver {
  private let location: WireLocation
  private let lacksIndex: Bool
  private let tellsLSN: Bool
  private let session: WireSession
  private let state: Mutex<State>

  private struct State {
    var listen: Listen?
    /// What the client has before the listen begins; nil if that is nothing of use.
    var known: KnownValue?
    /// The request that is answered when the first value is known.
    var number: Int64?
    /// Whether changes were left out, since the client is too slow.
    var isLagging = false
    var isRestarting = false
    var isStopped = false
    /// Where the values go that are being made, the oldest first.
    var places: [ReservedPlace] = []
  }

  /// - Parameters:
  ///   - lacksIndex: whether the client is warned that the rules declare no index for its query.
  ///   - tellsLSN: whether the answer tells the last write that the first value has.
  init(
    _ location: WireLocation, known: KnownValue?, lacksIndex: Bool, tellsLSN: Bool,
    _ session: WireSession
  ) {
    self.location = location
    self.lacksIndex = lacksIndex
    self.tellsLSN = tellsLSN
    self.session = session
    state = Mutex(State(known: known))
  }

  func begin(_ number: Int64, _ hub: ListenHub) {
    let listen = Listen(location.path, location.query, self)
    let isStopped = state.withLock { state in
      if state.isStopped { return true }
      state.listen = listen
      state.number = number
      return false
    }
    // Ended by another thread before it has begun.
    if isStopped { return session.began(number, content(nil)) }
    hub.register(listen)
  }

  /// Begins anew if changes were left out, unless that is under way.
  func catchUp(_ hub: ListenHub) {
    let listen = state.withLock { state -> Listen? in
      guard state.isLagging, !state.isRestarting else { return nil }
      state.isRestarting = true
      return state.listen
    }
    if let listen { hub.restart(listen) }
  }

  func stop(_ hub: ListenHub) {
    let (listen, isFirst) = state.withLock { state in
      defer {
        state.isStopped = true
        state.listen = nil
      }
      return (state.listen, !state.isStopped)
    }
    if isFirst { session.connection.account.add(-location.byteCount) }
    if let listen { hub.unregister(listen) }
    session.caughtUp(self)
  }

  // MARK: Events

  var client: AnyObject { session }
  var address: ClientAddress? { session.connection.account.address }

  /// What is shown of it has a member for each child.
  func takesLong(toBegin node: Node) -> Bool {
    location.isShallow && node.childCount > Listen.costMax
  }

  func prepare() {
    let place = session.connection.reserve()
    let wasLagging = state.withLock { state in
      state.places.append(place)
      // Changes are behind the place from now on.
      defer {
        state.isLagging = false
        state.isRestarting = false
      }
      return state.isLagging
    }
    if wasLagging { session.caughtUp(self) }
  }

  func giveUp() {
    let (place, number) = state.withLock { state in
      defer { state.number = nil }
      return (state.places.isEmpty ? nil : state.places.removeFirst(), state.number)
    }
    place?.fill(number.map { [WireText.answer($0, status: "ok", content(nil))] } ?? [])
  }

  /// What the answer to the request says.
  ///
  /// - Parameter lsn: of the last write that the first value has; nil if none was made.
  private func content(_ lsn: UInt64?) -> WireText.Content {
    if lacksIndex { return .json("{\"w\":[\"no_index\"]}") }
    guard tellsLSN, let lsn else { return .object }
    return .json("{\"lsn\":\(lsn)}")
  }

  func begin(_ node: Node, lsn: UInt64) {
    let (number, known, place, wasLagging) = state.withLock { state in
      let place = state.places.isEmpty ? nil : state.places.removeFirst()
      defer {
        state.number = nil
        state.known = nil
        if place == nil {
          state.isLagging = false
          state.isRestarting = false
        }
      }
      return (state.number, state.known, place, state.isLagging)
    }
    let texts = number == nil ? [text(node)] : texts(node, known)
    let content = content(lsn)
    if let place {
      fill(place, texts, number, content)
      return
    }
    // Before the answer, and hence whatever waits already.
    for text in texts { push(text, isFirst: number != nil) }
    if let number { session.began(number, content) }
    if wasLagging, !state.withLock({ $0.isLagging }) { session.caughtUp(self) }
  }

  /// What the client needs for its first value. What it has already is not sent again.
  private func texts(_ node: Node, _ known: KnownValue?) -> [AnswerText] {
    switch known {
    case .all(let known): known == node ? [] : [text(node)]
    case .outdated(let known): [known.text(for: node) ?? text(node)]
    case nil: [text(node)]
    }
  }

  private func text(_ node: Node) -> AnswerText {
    location.isShallow
      ? WireText.shallowPush(node, at: location.path, tag: location.tag)
      : WireText.push(.put(.root, node), at: location.path, tag: location.tag)
  }

  private func fill(
    _ place: ReservedPlace, _ texts: [AnswerText], _ number: Int64?, _ content: WireText.Content
  ) {
    state.withLock { state in
      place.fill(
        (state.isStopped ? [] : texts)
          + (number.map { [WireText.answer($0, status: "ok", content)] } ?? []))
    }
  }

  private struct Form: Hashable, Sendable {
    let tag: Int64?
    let isShallow: Bool
  }

  /// The children are shown as they are by now: a later change shows them again.
  private func shallowText(_ change: PlaceChange) -> AnswerText {
    let tag = location.tag
    guard let keys = ShallowText.keys(of: change) else {
      guard case .put(_, let node) = change else { return AnswerText() }
      return WireText.shallowPush(node, at: location.path, tag: tag)
    }
    // A window's change has its children whole.
    if location.query != nil {
      switch change {
      case .put(_, let node):
        return WireText.shallowPush(keys.map { ($0, node) }, at: location.path, tag: tag)
      case .patch(_, let parts):
        let children = zip(keys, parts).map { ($0, $1.node) }
        return WireText.shallowPush(children, at: location.path, tag: tag)
      }
    }
    return WireText.shallowPush(
      keys.map { ($0, session.child($0, of: location.path)) }, at: location.path, tag: tag)
  }

  func receive(_ update: ListenUpdate) {
    if state.withLock({ $0.isStopped || $0.isLagging }) { return }
    push(
      update.text(Form(tag: location.tag, isShallow: location.isShallow)) { change in
        location.isShallow
          ? shallowText(change) : WireText.push(change, at: location.path, tag: location.tag)
      })
  }

  func end() {}

  private func push(_ text: AnswerText, isFirst: Bool = false) {
    // While the lock is held, so that nothing follows once `stop` has returned.
    let isLeftOut = state.withLock { state in
      if state.isStopped || session.push(text, isFirst: isFirst) { return false }
      state.isLagging = true
      return true
    }
    guard isLeftOut else { return }
    session.lags(self)
    // Stopped meanwhile, it does not begin anew.
    if state.withLock({ $0.isStopped }) { session.caughtUp(self) }
  }
}
