import DendroProtocol
import Dispatch
import Synchronization

/// One client of long polling: its polls on one side, whole messages on the other.
///
/// A poll is an exchange that is held until there is something to say. A new one releases those before it.
final class PollConnection: WireTransport {
  let key: PollKey
  let service: RESTService
  let limits: WireLimits
  let account: SessionAccount
  let figures: ServerFigures
  private let patience: Patience
  let state: Mutex<State>

  /// How long is waited for what.
  struct Patience: Sendable {
    /// For a message, before a poll is answered without one.
    let hold: Duration
    /// For a poll, before the session ends.
    let silence: Duration
    /// For the first one.
    let start: Duration
  }

  struct State {
    var session: WireSession?
    // What comes.
    var packets: PollPackets
    var inbox = Inbox()
    /// Messages that have come.
    var messageCount = 0
    var timer = MessageTimer()
    var isHandling = false
    var isAskedAgain = false
    /// Messages that the client may send until the next second.
    var allowance: Int
    // What goes.
    var outbox: Outbox
    /// A push was left out.
    var hasLeftOut = false
    var held: [HeldPoll] = []
    var answers: PollAnswers
    var lastPoll = ContinuousClock.now
    var hasPolled = false
    // The end.
    /// Polls get what waits, and the client leaves.
    var isClosing = false
    var isClosed = false
    // The change to a WebSocket.
    var socket: WebSocketConnection?
    /// The client has found the socket good: what is sent is for it.
    var isSwitched = false
    /// The client sends over the socket alone, and what it has sent by polls is handled.
    var hasPollsEnded = false
    /// What came over the socket before that.
    var later: [Inbox.Item] = []
    var laterByteCount = 0
    // What was counted when it was counted last.
    var incomingByteCount = 0
    var keptByteCount = 0
  }

  struct HeldPoll: Sendable {
    let serial: Int64
    var exchange: Exchange
    let since: ContinuousClock.Instant
  }

  init(
    _ key: PollKey, _ service: RESTService, _ limits: WireLimits, _ patience: Patience,
    _ account: SessionAccount, _ figures: ServerFigures
  ) {
    self.account = account
    self.key = key
    self.service = service
    self.limits = limits
    self.patience = patience
    self.figures = figures
    state = Mutex(
      State(
        packets: PollPackets(byteLimit: limits.messageBytes), allowance: limits.messagesASecond,
        outbox: Outbox(account),
        answers: PollAnswers(byteLimit: limits.backlogBytes)))
  }

  /// The name of the session's database; nil before it has begun.
  var namespace: String? { state.withLock { $0.session?.namespace.name } }

  /// Serves the session, which gets the messages.
  func begin(_ session: WireSession) {
    state.withLock { $0.session = session }
    account.open(self)
  }

  var heldCount: Int { state.withLock { $0.held.count } }

  var waitingByteCount: Int { state.withLock { $0.outbox.byteCount } }

  // MARK: What goes

  func send(_ message: AnswerText, isPush: Bool) -> Bool {
    let (isTaken, isOverfull, socket) = state.withLock { state in
      if state.isSwitched { return (true, false, state.socket) }
      let isTaken = state.outbox.append(message, isPush: isPush, limits)
      if !isTaken { state.hasLeftOut = true }
      return (isTaken, state.outbox.isOverfull, nil as WebSocketConnection?)
    }
    if let socket { return socket.send(message, isPush: isPush) }
    if isOverfull { drop() } else { deliver() }
    return isTaken
  }

  func reserve() -> ReservedPlace {
    let (number, socket) = state.withLock { state in
      state.isSwitched && state.socket != nil
        ? (0, state.socket) : (state.outbox.reserve(), nil as WebSocketConnection?)
    }
    return socket?.reserve() ?? ReservedPlace(transport: self, number: number)
  }

  func fill(_ place: Int, _ messages: [AnswerText]) {
    state.withLock { $0.outbox.fill(place, messages) }
    deliver()
  }

  func close(_ code: UInt16) {
    let (isFirst, session, socket) = state.withLock { state in
      defer { state.isClosing = true }
      return (!state.isClosing, state.session, state.socket)
    }
    guard isFirst else { return }
    socket?.close(code)
    session?.leave()
    deliver()
  }

  /// Not on the thread of the caller, which may be in the middle of its own work.
  func drop() {
    let socket = state.withLock { $0.socket }
    socket?.drop()
    service.workers.async { self.end() }
  }

  func refill() {
    let (waits, socket) = state.withLock { state in
      defer { state.allowance = limits.messagesASecond }
      return (state.allowance <= 0, state.socket)
    }
    socket?.refill()
    if waits { wake() }
  }

  func wake() {
    let socket = state.withLock { $0.isSwitched ? $0.socket : nil }
    if let socket { socket.wake() }
    service.workers.async { [self] in
      handleWaiting()
      deliver()
      catchUp()
    }
  }

  /// Asks for what was left out, if the client has got what waited: it may have before the session knew of it.
  private func catchUp() {
    let session = state.withLock { $0.outbox.isEmpty && !$0.isSwitched ? $0.session : nil }
    session?.outboxIsEmpty()
  }

  // MARK: Time

  func tick(_ now: ContinuousClock.Instant) {
    let (due, isSilent, isOverdue) = state.withLock { state in
      let limit = state.hasPolled ? patience.silence : patience.start
      let isSilent = state.held.isEmpty && now - state.lastPoll >= limit
      let isOverdue = state.timer.isOverdue(
        now, number: state.messageCount, byteCount: state.packets.byteCountUnderWay,
        isRead: state.inbox.byteCount <= limits.backlogBytes, limit: limits.messageTimeout)
      return (state.release(now, after: patience.hold), isSilent, isOverdue)
    }
    for (exchange, text) in due { exchange.finish(RESTAnswer(script: text)) }
    if isOverdue { drop() } else if isSilent { leave() }
  }

  /// Counts what is in memory of what the client sends, and of answers that it may ask for again.
  func count(_ state: inout State) {
    let incoming =
      state.packets.keptByteCount + state.inbox.byteCount + state.laterByteCount
    account.add(incoming - state.incomingByteCount, isExempt: true)
    state.incomingByteCount = incoming
    account.add(state.answers.keptByteCount - state.keptByteCount)
    state.keptByteCount = state.answers.keptByteCount
  }

  // MARK: The end

  /// No poll follows: ends the session, unless it goes on over a WebSocket.
  func leave() {
    let (hasMoved, session) = state.withLock { ($0.hasMoved, $0.session) }
    if hasMoved { return service.polls.remove(self) }
    end()
    // Its place is free at once, whatever its last write waits for. It is still known by its name, so that the client's next
    // session comes behind that write.
    if let session { service.sessions.freeSeat(of: session) }
  }

  /// Ends the session at once. Polls that are held get what waits.
  func end() {
    close(1001)
    let held = state.withLock { state in
      state.isClosed = true
      state.outbox.close()
      // The session and the connection hold each other.
      state.session = nil
      state.socket = nil
      state.inbox = Inbox()
      state.later = []
      defer { state.held = [] }
      return state.held
    }
    account.close()
    service.polls.remove(self)
    for poll in held { poll.exchange.finish(RESTAnswer(script: PollText.close)) }
  }
}
