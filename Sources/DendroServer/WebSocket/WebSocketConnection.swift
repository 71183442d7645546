import CDendroWSLay
import DendroPlatform
import DendroProtocol
import Synchronization

/// One WebSocket: the bytes of its socket on one side, whole messages on the other.
///
/// Unchecked: all that has no lock is used on the loop's thread only.
final class WebSocketConnection: SocketLoop.Client, WireTransport, @unchecked Sendable {
  let descriptor: Int32
  private let loop: SocketLoop
  let limits: WireLimits
  let account: SessionAccount
  private let figures: ServerFigures
  /// Messages that the client may send until the next second.
  private let allowance: Atomic<Int>
  var context: wslay_event_context_ptr?
  private var assembler: MessageAssembler
  /// What libmicrohttpd has read beyond the request's head.
  var early: [UInt8]
  private var receiver: (any WireReceiver)?
  private var isClosed = false
  /// Frames that are not sent yet: what one turn has to say goes out together.
  var unsent = SendBuffer()
  /// What there is of the message under way. libwslay would keep each of its fragments by itself, which takes many times
  /// the memory if they are short.
  private var fragments: [UInt8] = []
  private var isControlFrame = false
  /// Messages that have come.
  private var messageCount = 0
  private var timer = MessageTimer()
  private var isReading = true
  private var isWriting = false
  /// The client has sent more than is allowed; what it sends is dropped.
  private var isRefused = false
  /// Pings since the client has read all that was to be sent. Their answers wait in libwslay, which does not bound them.
  private var pingCount = 0
  private static let pingCountMax = 64
  /// Bytes read in this turn, and whether more is to be read than those of one. None are read before the next one.
  var readCount = 0
  var wantsToRead = false
  /// Whether the socket had no more than was read in this turn. The loop says if more has come.
  var isDrained = false
  /// The most bytes that are read in one turn: so long others wait.
  static let readByteLimit = 16 << 10
  /// The long message that is being sent. Nil while frames of it are made elsewhere.
  private var outgoing: OutgoingMessage?
  /// Whether frames are made elsewhere. The loop is woken when they are there.
  private var isMaking = false
  /// Makes the frames of long messages, for each client in turn.
  private let parts: FairQueue
  /// So much of a long message is made or counted at a time.
  private static let partByteCount = 64 << 10
  /// Whether there is more to be made or sent than in one turn. Nothing is before the next one.
  private var wantsTurn = false
  /// About the most bytes of frames that are made or sent in one turn: so long others wait.
  private static let turnByteLimit = 16 << 10
  /// What is in memory of messages that are not whole.
  private var incomingByteCount = 0
  private var reader = ReadTimer()
  private let state: Mutex<State>

  private struct State {
    var outbox: Outbox
    var isWoken = false
    /// The code with which the connection is closed once all messages are sent.
    var closingCode: UInt16?
    /// It is closed whatever waits.
    var isDropped = false
    /// The long message of which frames are to be made.
    var unmade: OutgoingMessage?
    /// The same, with frames.
    var made: OutgoingMessage?
  }

  /// - Parameters:
  ///   - socket: taken over.
  ///   - parts: makes the frames of long messages.
  init(
    _ socket: Int32, _ loop: SocketLoop, _ parts: FairQueue, early: [UInt8], _ limits: WireLimits,
    _ account: SessionAccount, _ figures: ServerFigures
  ) {
    self.parts = parts
    descriptor = socket
    self.account = account
    state = Mutex(State(outbox: Outbox(account)))
    self.loop = loop
    self.early = early
    self.limits = limits
    self.figures = figures
    allowance = Atomic(limits.messagesASecond)
    assembler = MessageAssembler(byteLimit: limits.messageBytes)
    _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL, 0) | O_NONBLOCK)
    var on: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
    // A peer that is gone without a word is noticed after two to five minutes. Each connection has its own moments: the
    // probes of many that wait since the same moment come at once otherwise, over and over, and a system that drops some
    // of them takes their peers for gone.
    for (option, value) in [
      (TCP_KEEPIDLE, Int32.random(in: 60...120)), (TCP_KEEPINTVL, Int32.random(in: 10...20)),
      (TCP_KEEPCNT, 8),
    ] {
      var value = value
      setsockopt(
        socket, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    setsockopt(
      socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Begins to serve the receiver, which gets the messages.
  func start(_ receiver: any WireReceiver) {
    self.receiver = receiver
    account.open(self)
    loop.add(self)
  }

  // MARK: From any thread

  func send(_ message: AnswerText, isPush: Bool) -> Bool {
    let (isTaken, wakes) = state.withLock { state -> (Bool, Bool) in
      if state.outbox.isClosed { return (true, false) }
      guard state.outbox.append(message, isPush: isPush, limits) else {
        return (false, false)
      }
      defer { state.isWoken = true }
      return (true, !state.isWoken)
    }
    if wakes { loop.wake(self) }
    return isTaken
  }

  func reserve() -> ReservedPlace {
    ReservedPlace(transport: self, number: state.withLock { $0.outbox.reserve() })
  }

  func fill(_ place: Int, _ messages: [AnswerText]) {
    state.withLock { $0.outbox.fill(place, messages) }
    loop.wake(self)
  }

  func close(_ code: UInt16) {
    state.withLock { $0.closingCode = $0.closingCode ?? code }
    loop.wake(self)
  }

  func drop() {
    state.withLock { $0.isDropped = true }
    loop.wake(self)
  }

  func refill() {
    let left = allowance.exchange(limits.messagesASecond, ordering: .relaxed)
    if left <= 0 { wake() }
  }

  func wake() { loop.wake(self) }

  var waitingByteCount: Int { state.withLock { $0.outbox.byteCount } }

  // MARK: On the loop's thread

  func serve(isReadable: Bool) -> SocketLoop.Interest? { serve(isReadable, isTurn: false) }

  func takeTurn() -> SocketLoop.Interest? { serve(false, isTurn: true) }

  private func serve(_ isReadable: Bool, isTurn: Bool) -> SocketLoop.Interest? {
    if isClosed { return nil }
    guard let context = opened() else { return shut() }
    let (isOverfull, isDropped) = state.withLock { state in
      state.isWoken = false
      if let made = state.made.take() {
        outgoing = made
        isMaking = false
      }
      return (state.outbox.isOverfull, state.isDropped)
    }
    // A client that does not read its answers would not read why.
    if isOverfull { return shut() }
    if isDropped { return leave(1013) }
    if isReadable || isTurn && wantsToRead && isReading {
      readCount = 0
      wantsToRead = false
      isDrained = false
      guard wslay_event_recv(context) == 0 else { return shut() }
      countIncoming()
    }
    loop.lend(to: &unsent)
    defer { loop.takeBack(from: &unsent) }
    guard write(context, isTurn: isTurn) else { return shut() }
    if wslay_event_want_write(context) == 0 { pingCount = 0 }
    let wantsWrite = wslay_event_want_write(context) != 0 || !unsent.isEmpty
    // After a close nothing more is sent.
    if wslay_event_want_read(context) == 0, !wantsWrite { return shut() }
    var interest: SocketLoop.Interest = []
    // A client that reads nothing is not read from: so its answers do not grow without bound.
    let isFull = state.withLock { $0.outbox.byteCount > limits.backlogBytes }
    isReading = wslay_event_want_read(context) != 0 && !isFull && mayReceive
    if isReading { interest.insert(wantsToRead ? .turn : .reading) }
    if wantsWrite { interest.insert(.writing) }
    if wantsTurn { interest.insert(.turn) }
    isWriting = wantsWrite
    return interest
  }

  private func countIncoming() {
    let byteCount = fragments.count + assembler.keptByteCount
    account.add(byteCount - incomingByteCount, isExempt: true)
    incomingByteCount = byteCount
  }

  func tick(_ now: ContinuousClock.Instant) -> Bool {
    let byteCount = assembler.byteCountUnderWay
    let isOverdue = timer.isOverdue(
      now, number: messageCount,
      byteCount: fragments.isEmpty ? byteCount : fragments.count + (byteCount ?? 0),
      isRead: isReading, limit: limits.messageTimeout)
    let hasStopped = reader.hasStopped(
      now, sentByteCount: unsent.sentByteCount, isWaiting: isWriting, limit: limits.readTimeout)
    guard isOverdue || hasStopped else { return false }
    state.withLock { $0.isDropped = true }
    return true
  }

  func end() { if !isClosed { _ = leave(1001) } }

  /// Says why, if the client reads, and closes.
  private func leave(_ code: UInt16) -> SocketLoop.Interest? {
    if let context = opened() {
      wslay_event_queue_close(context, code, nil, 0)
      _ = wslay_event_send(context)
      _ = unsent.flush(to: descriptor)
    }
    return shut()
  }

  var mayReceive: Bool {
    allowance.load(ordering: .relaxed) > 0 && pingCount < Self.pingCountMax
      && !(receiver?.isFull ?? false)
  }

  func beginFrame(
    _ context: wslay_event_context_ptr?, _ frame: wslay_event_on_frame_recv_start_arg
  ) {
    isControlFrame = frame.opcode & 0x8 != 0
    if isControlFrame || isRefused { return }
    guard frame.payload_length > UInt64(limits.messageBytes - fragments.count) else { return }
    refuse(context, WSLAY_CODE_MESSAGE_TOO_BIG)
  }

  func takePart(_ part: wslay_event_on_frame_recv_chunk_arg) {
    if isControlFrame || isRefused { return }
    fragments.append(contentsOf: UnsafeBufferPointer(start: part.data, count: part.data_length))
  }

  func take(_ context: wslay_event_context_ptr?, _ message: wslay_event_on_msg_recv_arg) {
    switch message.opcode {
    case UInt8(WSLAY_TEXT_FRAME.rawValue):
      if isRefused { return }
      var frame: [UInt8] = []
      swap(&frame, &fragments)
      let step = assembler.add(frame)
      if step != .waiting { messageCount += 1 }
      switch step {
      case .waiting: break
      case .tooLarge(let number?): receiver?.refuseTooLarge(number)
      case .tooLarge(nil): refuse(context, WSLAY_CODE_MESSAGE_TOO_BIG)
      case .message(let text):
        allowance.wrappingSubtract(1, ordering: .relaxed)
        figures.noteMessage(text.count)
        if receiver?.handle(text) == false {
          isRefused = true
          refuseMessage()
        }
      }
    case UInt8(WSLAY_BINARY_FRAME.rawValue) where !isRefused:
      refuse(context, WSLAY_CODE_UNSUPPORTED_DATA)
    case UInt8(WSLAY_PING.rawValue): pingCount += 1
    case UInt8(WSLAY_CONNECTION_CLOSE.rawValue):
      // Before it is answered: who has the answer may rely on it that the session has been left.
      endReceiver()
    default: break  // libwslay answers control frames by itself.
    }
  }

  private func refuse(_ context: wslay_event_context_ptr?, _ code: wslay_status_code) {
    isRefused = true
    fragments = []
    wslay_event_shutdown_read(context)
    wslay_event_queue_close(context, UInt16(code.rawValue), nil, 0)
  }

  /// Gives messages to libwslay as fast as the client reads them, frame by frame.
  ///
  /// - Returns: false if the connection is lost.
  private func write(_ context: wslay_event_context_ptr, isTurn: Bool) -> Bool {
    let isOpen = writeFrames(context, isTurn: isTurn)
    if let outgoing { state.withLock { $0.outbox.noteSending(outgoing.byteCount) } }
    return isOpen
  }

  private func writeFrames(_ context: wslay_event_context_ptr, isTurn: Bool) -> Bool {
    var turnByteCount = 0
    if isTurn { wantsTurn = false }
    while true {
      if wslay_event_want_write(context) != 0 {
        guard wslay_event_send(context) == 0 else { return false }
        if wslay_event_want_write(context) != 0 { return unsent.flush(to: descriptor) }
      }
      // A client that reads without a pause is not the only one.
      if turnByteCount >= Self.turnByteLimit { wantsTurn = true }
      // After a close nothing more is sent.
      if wantsTurn || wslay_event_get_close_sent(context) != 0 {
        return unsent.flush(to: descriptor)
      }
      switch nextFrame() {
      case .frame(let frame):
        turnByteCount += frame.count
        let result = frame.withUnsafeBufferPointer { frame in
          var text = wslay_event_msg(
            opcode: UInt8(WSLAY_TEXT_FRAME.rawValue), msg: frame.baseAddress,
            msg_length: frame.count)
          return wslay_event_queue_msg(context, &text)
        }
        // The close is about to be sent.
        if result != 0 { return unsent.flush(to: descriptor) }
      case .made(let byteCount): turnByteCount += byteCount
      case .unmade: return unsent.flush(to: descriptor)
      case .end:
        guard unsent.flush(to: descriptor) else { return false }
        // The client has not read all of it yet.
        guard unsent.isEmpty else { return true }
        guard state.withLock({ $0.outbox.isEmpty }) else { return true }
        receiver?.outboxIsEmpty()
        let code = state.withLock { $0.outbox.isEmpty ? $0.closingCode : nil }
        guard let code, wslay_event_get_close_sent(context) == 0 else { return true }
        // The client's own close is not waited for.
        wslay_event_shutdown_read(context)
        wslay_event_queue_close(context, code, nil, 0)
      }
    }
  }

  private enum FrameStep {
    case frame([UInt8])
    /// So many bytes of text were made or counted.
    case made(Int)
    /// More are made elsewhere.
    case unmade
    case end
  }

  /// The next frame of the messages that wait. Messages up to 64 KiB are made here, and the beginning of longer ones.
  private func nextFrame() -> FrameStep {
    while !isMaking {
      if let frame = outgoing?.popFirst() { return .frame(frame) }
      if outgoing?.isAtEnd ?? true {
        outgoing = nil
        guard let message = state.withLock({ $0.outbox.beginSending() }) else { return .end }
        var frames = MessageFrames(message)
        if case .frame(let only) = frames.next() { return .frame(only) }
        outgoing = OutgoingMessage(frames)
        return .made(MessageFrames.partByteCount)
      }
      if outgoing?.isLong == false {
        outgoing?.make(byteCount: Self.turnByteLimit)
        return .made(Self.turnByteLimit)
      }
      isMaking = true
      state.withLock { $0.unmade = outgoing.take() }
      makeElsewhere()
    }
    return .unmade
  }

  /// Has frames of the message that is being sent made on another thread: it takes long, and others wait for this one.
  private func makeElsewhere() {
    parts.async(for: self) { [self] in
      guard var message = state.withLock({ $0.unmade.take() }) else { return }
      message.make(byteCount: Self.partByteCount)
      let hasFrames = message.hasFrames
      let isOpen = state.withLock { state in
        if state.outbox.isClosed { return false }
        state.outbox.noteSending(message.byteCount)
        if hasFrames { state.made = message } else { state.unmade = message }
        return true
      }
      guard isOpen else { return }
      if hasFrames { loop.wake(self) } else { makeElsewhere() }
    }
  }

  /// Closes the socket, which ends the session.
  private func shut() -> SocketLoop.Interest? {
    isClosed = true
    // What was to be sent is given up after the lock.
    _ = state.withLock { state in
      state.outbox.close()
      return (state.unmade.take(), state.made.take())
    }
    outgoing = nil
    // A piece of work may refer to the connection for a while.
    fragments = []
    early = []
    loop.takeBack(from: &unsent)
    unsent = SendBuffer()
    assembler = MessageAssembler(byteLimit: limits.messageBytes)
    account.close()
    if let context { wslay_event_context_free(context) }
    context = nil
    loop.forget(descriptor)
    DendroPlatform.close(descriptor)
    endReceiver()
    return nil
  }

  private func endReceiver() {
    receiver?.leave()
    receiver = nil
  }
}
