import DendroProtocol
import DendroTree
import Synchronization

/// One listen of a session.
final class WireListen: ListenReceiver {
  private let location: WireLocation
  private let lacksIndex: Bool
  private let session: WireSession
  private let state: Mutex<State>

  private struct State {
    var listen: Listen?
    /// What the client has before the listen begins.
    var known: Node?
    /// The request that is answered when the first value is known.
    var number: Int64?
    /// Whether changes were left out, since the client is too slow.
    var isLagging = false
    var isRestarting = false
    var isStopped = false
  }

  /// - Parameter lacksIndex: whether the client is warned that the rules declare no index for its query.
  init(_ location: WireLocation, known: Node?, lacksIndex: Bool, _ session: WireSession) {
    self.location = location
    self.lacksIndex = lacksIndex
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
    if isStopped { return session.began(number, lacksIndex: lacksIndex) }
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

  func begin(_ node: Node, lsn: UInt64) {
    let (number, known, isStopped, wasLagging) = state.withLock { state in
      defer {
        state.number = nil
        state.known = nil
        state.isLagging = false
        state.isRestarting = false
      }
      return (state.number, state.known, state.isStopped, state.isLagging)
    }
    // What the client has already is not sent again.
    let isKnown = number != nil && known == node
    if !isKnown, !isStopped {
      // Before the answer, and hence whatever waits already.
      push(
        location.isShallow
          ? WireText.shallowPush(node, at: location.path, tag: location.tag)
          : WireText.push(.put(.root, node), at: location.path, tag: location.tag),
        isFirst: number != nil)
    }
    if let number { session.began(number, lacksIndex: lacksIndex) }
    if wasLagging, !state.withLock({ $0.isLagging }) { session.caughtUp(self) }
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
    if session.push(text, isFirst: isFirst) { return }
    let isStopped = state.withLock { state in
      state.isLagging = true
      return state.isStopped
    }
    if isStopped { return }
    session.lags(self)
    // Stopped meanwhile, it does not begin anew.
    if state.withLock({ $0.isStopped }) { session.caughtUp(self) }
  }
}
