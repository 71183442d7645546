import Dendro
import DendroPlatform
import DendroProtocol
import Synchronization

/// The dialogue with one client: its listens, its identity, and what it wants written when it leaves.
///
/// Messages are handled on the connection's thread, in their order. Listens push from the hub's queue. The answer to a
/// write comes after the write's events: from the hub's queue if events wait there, and otherwise from the commit thread.
final class WireSession: Sendable {
  let id: String
  private let lease: NamespaceLease
  var namespace: Namespace { lease.namespace }
  let service: RESTService
  /// Who may do what in the database.
  let rights: Rights
  let connection: any WireTransport
  /// What is to be written when the client leaves.
  let client: DatabaseSession
  let state = Mutex(State())
  /// What the journal has of this session; nil once its last write has been made. Held while an operation is registered and
  /// kept, and while the last write is made, so that nothing is kept behind that. A thread that
  /// holds it may wait for the disk.
  let kept = Mutex<DisconnectJournal.Session?>(DisconnectJournal.Session())
  /// Whether the disk has refused an entry of the journal, so that `client` has an operation that is not kept.
  let hasLostEntry = Atomic<Bool>(false)
  /// Whether the server's sessions know that the client has asked for something.
  private let hasAsked = Atomic<Bool>(false)
  /// Writes without an answer, in a database that several servers have.
  let writesUnderWay = Atomic<Int>(0)
  /// Bytes of those that another server makes.
  let passedByteCount = Atomic<Int>(0)
  /// Whether the client had signed in when its sessions were last told.
  let hasSignedIn = Atomic<Bool>(false)
  /// Whether a message is performed on the connection's thread.
  let isPerforming = Atomic<Bool>(false)
  /// As in the state, for the connection's thread.
  let hasEnded = Atomic<Bool>(false)

  struct State {
    var authentication = Authentication.anonymous
    /// How often the client has become another one.
    var authenticationCount = 0
    /// That of the last write with a number.
    var lastOpening: (name: OpeningName, opening: WriteResults.Opening)?
    var listens: [WireLocation: WireListen] = [:]
    /// Those of which changes were left out, since the client is too slow.
    var lagging: [ObjectIdentifier: WireListen] = [:]
    /// Answers to writes whose pushes were left out: they come after what replaces the pushes.
    var heldAnswers: [@Sendable () -> Void] = []
    /// Messages that came after a write whose condition is not decided yet.
    var waiting = Inbox()
    /// The bytes of the message that was taken from them last, which is still performed.
    var performedByteCount = 0
    /// The message that waits for the client's own writes.
    var behindWrites: BehindWrites?
    /// Whether messages have to wait.
    var isWaiting = false
    /// Whether the client has sent what no client sends: nothing that follows is looked at.
    var isRefused = false
    /// The client has left. Of what it has sent before, its writes are still made, and what it wants written then is
    /// registered; it is written behind them.
    var isEnded = false
    /// Whether the last write is made, or was.
    var isFinishing = false
    var isFinished = false
    /// Called once the last write was made.
    var finished: [@Sendable () -> Void] = []
    /// What is registered for the end, as it was counted.
    var keptByteCount = 0
  }

  init(
    _ id: String, _ lease: NamespaceLease, _ service: RESTService, _ connection: any WireTransport
  ) {
    self.id = id
    self.lease = lease
    self.service = service
    rights = service.rights(in: lease.namespace)
    self.connection = connection
    client = lease.namespace.database.makeServedSession()
    connection.account.belongs(to: self)
  }

  /// The first message to the client.
  func hello(host: String) -> AnswerText {
    WireText.hello(
      time: systemMilliseconds(), host: host, session: id, server: namespace.results?.server)
  }

  /// Begins a new second of what the client may send.
  func refill() { connection.refill() }

  // MARK: Messages

  /// A message that is longer is parsed on another thread, and so are those after it.
  private static let inlineByteCountMax = 64 << 10

  /// - Returns: false for what no client sends; nothing is looked at behind that, or once the session has ended.
  func handle(_ message: [UInt8]) -> Bool {
    // What is not in memory yet is read from the disk.
    let isLong = message.count > Self.inlineByteCountMax || !namespace.isLoaded
    let (isEnded, isHeld, begins) = state.withLock { state in
      if state.isEnded || state.isRefused { return (true, false, false) }
      guard state.isWaiting || isLong else {
        isPerforming.store(true, ordering: .relaxed)
        return (false, false, false)
      }
      let item = Inbox.Item.message(message)
      state.waiting.append(item)
      connection.account.addOwn(item.byteCount)
      defer { state.isWaiting = true }
      return (false, true, !state.isWaiting)
    }
    if isEnded { return true }
    if begins { performWaiting() }
    if isHeld { return true }
    let outcome = perform(message)
    isPerforming.store(false, ordering: .sequentiallyConsistent)
    if hasEnded.load(ordering: .sequentiallyConsistent) { finishIfIdle() }
    return outcome != .refused
  }

  /// What became of a message.
  private enum Outcome {
    case performed
    /// It is a write whose condition is decided later, or a reading of the disk: the messages after it wait.
    case deciding
    /// It is not what clients send.
    case refused
  }

  /// - Parameter hasLeft: whether the client has: then what it has asked for is not looked at.
  private func perform(_ message: [UInt8], hasLeft: Bool = false) -> Outcome {
    switch WireMessage(message) {
    case .malformed: return .refused
    case .other, .acknowledgement, .endOfTransmission: break
    case .ping: connection.send(WireText.pong)
    case .request(let request):
      switch request.action {
      case .success(let action):
        if !hasLeft || action.outlivesClient { return perform(action, request.number) }
      case .failure(let error): refuse(request.number, error)
      }
    }
    return .performed
  }

  /// Does what may wait for the disk. The messages after it wait.
  private func onWritingQueue(_ body: @escaping @Sendable (WireSession) -> Void) -> Outcome {
    state.withLock { $0.isWaiting = true }
    namespace.writing.async { [self] in
      body(self)
      performWaiting()
    }
    return .deciding
  }

  /// Performs the messages that wait, now that what they wait for is done.
  func performWaiting() {
    if namespace.isLoaded {
      namespace.messages.async(for: self) { self.performSome() }
    } else {
      service.workers.async { self.performSome() }
    }
  }

  /// Performs messages that wait, until it is the turn of others.
  private func performSome() {
    var byteCount = 0
    while byteCount < Self.inlineByteCountMax {
      let (message, hasLeft) = state.withLock { state -> ([UInt8]?, Bool) in
        connection.account.addOwn(-state.performedByteCount)
        let before = state.waiting.byteCount
        let next = state.waiting.popFirst()
        state.performedByteCount = before - state.waiting.byteCount
        if case .message(let message) = next { return (message, state.isEnded) }
        state.waiting = Inbox()
        state.isWaiting = false
        return (nil, state.isEnded)
      }
      guard let message else {
        if hasLeft { return finishIfIdle() }
        // The connection may be read from again.
        return connection.wake()
      }
      byteCount += message.count
      switch perform(message, hasLeft: hasLeft) {
      case .performed: break
      case .deciding: return
      case .refused: return refuseRest()
      }
    }
    performWaiting()
  }

  /// Drops what waits behind a message that no client sends, and closes the connection.
  private func refuseRest() {
    giveUpMessages()
    endCountingMessage()
    state.withLock { $0.isWaiting = false }
    finishIfIdle()
    connection.refuseMessage()
  }

  /// The message that is performed counts no more: what is left of it counts by itself, or nothing is.
  private func endCountingMessage() {
    state.withLock { state in
      connection.account.addOwn(-state.performedByteCount)
      state.performedByteCount = 0
    }
  }

  /// Drops what the client has sent and nothing has looked at yet, and all that follows.
  func giveUpMessages() {
    state.withLock { state in
      connection.account.addOwn(-state.waiting.byteCount)
      state.waiting = Inbox()
      state.isRefused = true
    }
  }

  /// Whether so much waits that no more is to be read.
  var isFull: Bool {
    state.withLock {
      $0.waiting.byteCount > service.backlogByteLimit
        || $0.heldAnswers.count > Self.heldAnswerCountMax
    }
  }

  /// The answers that wait for a client that reads slowly, after which nothing more is read from it.
  private static let heldAnswerCountMax = 1_000

  /// Tells the server's sessions that the client asks for something, or has become another one.
  ///
  /// - Returns: false if the client has to leave.
  @discardableResult
  func noteStanding() -> Bool {
    hasAsked.store(true, ordering: .relaxed)
    let isUser = identity != .anonymous
    hasSignedIn.store(isUser, ordering: .relaxed)
    connection.account.isUser.store(isUser, ordering: .relaxed)
    // It may have given up its place.
    if hasEnded.load(ordering: .relaxed) { return true }
    if service.sessions.note(self) { return true }
    giveUpMessages()
    connection.close(1013)
    return false
  }

  /// - Parameter isBehindWrites: whether the client's own writes have their answers.
  private func perform(
    _ action: WireAction, _ number: Int64, isBehindWrites: Bool = false
  ) -> Outcome {
    if action.isRead, !isBehindWrites, writesUnderWay.load(ordering: .relaxed) > 0 {
      behindWrites(downTo: 0) { [self] in
        if case .deciding = perform(action, number, isBehindWrites: true) { return }
        performWaiting()
      }
      return .deciding
    }
    if action.isForPlace, !hasAsked.load(ordering: .relaxed), !noteStanding() { return .performed }
    switch action {
    case .none: answer(number)
    case .listen(let location, let hash, let since):
      // The hash of what is there is O(its size), and so is seeing whether that is too much.
      if !hash.isEmpty || mayBeTooLarge(location) {
        // When it is the client's turn. The messages after it wait.
        state.withLock { $0.isWaiting = true }
        namespace.turns.async(for: self, at: connection.account.address) { [self] in
          if state.withLock({ $0.isEnded }) { return performWaiting() }
          listen(location, hash, since: since, number) { self.performWaiting() }
        }
        return .deciding
      }
      listen(location, hash, since: since, number) {}
    case .unlisten(let location): unlisten(location, number)
    case .get(let location): get(location, number)
    case .lsn: tellLSN(number)
    case .write(let draft, let path, let condition):
      return write(draft, at: path, if: condition, number) ? .performed : .deciding
    case .numberedWrite(let draft, let path, let condition, let writeNumber, let digest):
      return write(draft, at: path, if: condition, writeNumber, digest, number)
        ? .performed : .deciding
    case .onDisconnect(let draft, let path):
      guard allowsRegistering(draft, at: path, number) else { break }
      return onWritingQueue { session in
        session.endCountingMessage()
        session.keep(draft, number)
        session.countKept()
      }
    case .cancelOnDisconnect(let path):
      return onWritingQueue { session in
        session.keep(.cancel(path), number)
        session.countKept()
      }
    case .signIn(let credentials):
      signIn(credentials, number)
      noteStanding()
    case .signOut:
      change(to: .anonymous)
      answer(number)
      noteStanding()
    }
    return .performed
  }

  /// Whether a client that has not signed in can do nothing here.
  var needsUser: Bool { rights.needsUser }

  /// Counts what is registered for the end.
  private func countKept() {
    let byteCount = client.operations.byteCount
    let old = state.withLock { state in
      defer { state.keptByteCount = byteCount }
      return state.keptByteCount
    }
    connection.account.addOwn(byteCount - old)
  }

  // MARK: Answers

  func answer(_ number: Int64, _ content: WireText.Content = .nothing) {
    connection.send(WireText.answer(number, status: "ok", content))
  }

  func refuse(_ number: Int64, _ error: RESTError, status: String? = nil) {
    let name =
      switch error {
      case .permissionDenied: "permission_denied"
      case .badToken: "invalid_token"
      case .readTooLarge, .writeTooLarge: "too_big"
      // Of a write of which the outcome is not known, a client that has numbered it asks again.
      default: [503, 504].contains(error.status) ? "unavailable" : "failure"
      }
    connection.send(WireText.answer(number, status: status ?? name, .text(error.text)))
  }

  /// Answers a write after the events of all commits so far: the client shows a write at once, and forgets it at
  /// the answer.
  func answerAfterEvents(_ number: Int64, _ outcome: WriteOutcome) {
    // Nothing waits before most answers.
    if namespace.hub.isIdle, state.withLock({ $0.lagging.isEmpty || $0.isEnded }) {
      return answer(number, outcome)
    }
    afterEvents { $0.answer(number, outcome) }
  }

  /// Calls `answer` after the events of all commits so far.
  func afterEvents(_ answer: @escaping @Sendable (WireSession) -> Void) {
    namespace.hub.afterEvents(isShort: true) { [self] in
      let isHeld = state.withLock { state in
        guard !state.lagging.isEmpty, !state.isEnded else { return false }
        state.heldAnswers.append { answer(self) }
        return true
      }
      if !isHeld { answer(self) }
    }
  }
}
