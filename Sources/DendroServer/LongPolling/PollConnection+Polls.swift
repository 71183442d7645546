import DendroProtocol
import DendroTree
import Dispatch
import Synchronization

// Which poll gets which answer.

extension PollConnection {
  /// What of a poll's messages is handled on the thread of its connection, in bytes.
  private static let inlineLimit = 64 << 10

  /// What is to be done with a poll.
  fileprivate enum Reception: Sendable {
    case answer(AnswerText)
    /// It is held; the same one came before over another connection.
    case held(instead: Exchange?)
    /// The client has lost messages, or sends what none sends.
    case broken
  }

  /// Takes what a poll brings, and holds it until there is something to say.
  func poll(_ serial: Int64, _ segments: [PollSegment], _ exchange: Exchange) {
    let (reception, byteCount) = state.withLock { state in
      let reception = state.receive(serial, segments, exchange, limits)
      count(&state)
      return (reception, state.inbox.byteCount)
    }
    switch reception {
    case .answer(let text): return exchange.finish(RESTAnswer(script: text))
    case .held(let other): other?.finish(RESTAnswer(script: AnswerText()))
    case .broken:
      // Only this poll says so: its client leaves without those that it has lost.
      exchange.finish(RESTAnswer(script: PollText.close))
      return end()
    }
    if byteCount > Self.inlineLimit { return wake() }
    handleWaiting()
    deliver()
  }

  /// Answers polls that have something to bring, and those that a newer one replaces.
  func deliver() {
    let (answers, session, isOver) = state.withLock { state in
      let answers = state.settle(limits)
      count(&state)
      let catchesUp = state.hasLeftOut && state.outbox.isEmpty && !answers.isEmpty
      if catchesUp { state.hasLeftOut = false }
      return (answers, catchesUp ? state.session : nil, state.isLeft)
    }
    for (exchange, text) in answers { exchange.finish(RESTAnswer(script: text)) }
    if let session { service.workers.async { session.outboxIsEmpty() } }
    if isOver, !answers.isEmpty { leave() }
  }
}

extension PollConnection.State {
  /// The most polls that are held while so much waits that none is released.
  private static let heldCountMax = 4
  /// What one answer brings, apart from its last message, in bytes.
  private static let answerByteLimit = 1 << 20

  /// Whether the client is to leave its polls once it has what waits.
  var isLeaving: Bool { isClosing || hasMoved }

  /// Whether the session goes on over a WebSocket alone.
  var hasMoved: Bool { isSwitched && hasPollsEnded && !isClosing }

  /// Whether nothing waits for polls any more.
  var isLeft: Bool { isLeaving && outbox.isEmpty }

  fileprivate mutating func receive(
    _ serial: Int64, _ segments: [PollSegment], _ exchange: Exchange, _ limits: WireLimits
  ) -> PollConnection.Reception {
    if isClosed { return .answer(PollText.close) }
    lastPoll = .now
    hasPolled = true
    switch answers.arrival(serial) {
    case .again(let text): return .answer(text)
    case .forgotten: return .broken
    case .new: break
    }
    if !hasPollsEnded, !isClosing {
      for segment in segments {
        guard let steps = try? packets.add(segment) else { return .broken }
        for step in steps {
          switch step {
          case .message(let message):
            messageCount += 1
            inbox.append(.message(message))
          case .tooLarge(let number?):
            messageCount += 1
            inbox.append(.tooLarge(number))
          case .tooLarge(nil), .waiting: break
          }
        }
      }
      // A client that waits for its answers does not get here.
      if inbox.byteCount > limits.messageBytes + limits.backlogBytes { return .broken }
    }
    if let index = held.firstIndex(where: { $0.serial == serial }) {
      defer { held[index].exchange = exchange }
      return .held(instead: held[index].exchange)
    }
    let index = held.firstIndex { $0.serial > serial } ?? held.count
    held.insert(
      PollConnection.HeldPoll(serial: serial, exchange: exchange, since: lastPoll), at: index)
    return .held(instead: nil)
  }

  /// Takes out those that are answered now, with their answers.
  fileprivate mutating func settle(
    _ limits: WireLimits
  ) -> [(Exchange, AnswerText)] {
    // A client whose messages wait sends no more of them while none of its polls is answered.
    let keeps = inbox.byteCount > limits.backlogBytes ? Self.heldCountMax : 1
    var result: [(Exchange, AnswerText)] = []
    while let first = held.first, isLeaving || outbox.hasNext || held.count > keeps {
      held.removeFirst()
      var messages: [AnswerText] = []
      var byteCount = 0
      while byteCount < Self.answerByteLimit, let message = outbox.popFirst() {
        byteCount += message.byteCount
        messages.append(message)
      }
      result.append(
        (first.exchange, answers.answer(first.serial, messages, closes: isLeft)))
      lastPoll = .now
    }
    return result
  }

  /// Takes out those that have waited long enough.
  mutating func release(
    _ now: ContinuousClock.Instant, after limit: Duration
  ) -> [(Exchange, AnswerText)] {
    let due = held.filter { now - $0.since >= limit }
    if due.isEmpty { return [] }
    held.removeAll { now - $0.since >= limit }
    lastPoll = now
    return due.map { ($0.exchange, answers.answer($0.serial, [])) }
  }
}
