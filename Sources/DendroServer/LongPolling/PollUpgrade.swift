import DendroProtocol
import Synchronization

/// A WebSocket to which a client that polls changes over in the middle of its session.
///
/// The server acknowledges the socket; the client pings over it, acknowledges too, and ends its transmission by polls.
/// From its acknowledgement on, what is sent to it goes over the socket, and the last message to its polls says so. What
/// it sends over the socket is handled after what it has sent by polls.
final class PollUpgrade: WireReceiver {
  private let polls: PollConnection
  private let socket: WebSocketConnection

  init(_ polls: PollConnection, _ socket: WebSocketConnection) {
    self.polls = polls
    self.socket = socket
  }

  func handle(_ message: [UInt8]) -> Bool {
    if polls.isSwitched { return polls.receive(.message(message)) }
    switch WireMessage(message) {
    case .ping: socket.send(WireText.pong)
    case .acknowledgement: polls.switchOver()
    case .other, .endOfTransmission: break
    case .request, .malformed: return false
    }
    return true
  }

  func refuseTooLarge(_ number: Int64) { _ = polls.receive(.tooLarge(number)) }

  var isFull: Bool { polls.isFull }

  func outboxIsEmpty() { polls.socketIsEmpty() }

  func leave() { polls.socketEnded() }
}

extension PollConnection {
  /// Offers a WebSocket to the client.
  ///
  /// - Returns: what serves the socket; nil if there is another one already, or the client is about to leave.
  func upgrade(to socket: WebSocketConnection) -> PollUpgrade? {
    let isTaken = state.withLock { state in
      guard state.socket == nil, !state.isClosing, state.session != nil else { return false }
      state.socket = socket
      return true
    }
    guard isTaken else { return nil }
    socket.send(WireText.acknowledgement)
    return PollUpgrade(self, socket)
  }

  fileprivate var isSwitched: Bool { state.withLock { $0.isSwitched } }

  fileprivate func switchOver() {
    state.withLock { state in
      state.isSwitched = true
      _ = state.outbox.append(WireText.endOfTransmission, isPush: false, limits)
    }
    deliver()
  }

  /// Takes a message that has come over the socket.
  ///
  /// - Returns: false for what no client sends.
  fileprivate func receive(_ item: Inbox.Item) -> Bool {
    let session = state.withLock { state -> WireSession? in
      if state.hasPollsEnded, state.inbox.isEmpty, !state.isHandling { return state.session }
      if state.hasPollsEnded {
        state.inbox.append(item)
      } else {
        state.later.append(item)
        state.laterByteCount += item.byteCount
      }
      count(&state)
      return nil
    }
    guard let session else {
      handleWaiting()
      return true
    }
    switch item {
    case .message(let message): return session.handle(message)
    case .tooLarge(let number): session.refuseTooLarge(number)
    }
    return true
  }

  fileprivate var isFull: Bool {
    let (session, byteCount) = state.withLock { state in
      (state.session, state.inbox.byteCount + state.laterByteCount)
    }
    return byteCount > limits.backlogBytes || session?.isFull ?? false
  }

  fileprivate func socketIsEmpty() {
    state.withLock { $0.isSwitched ? $0.session : nil }?.outboxIsEmpty()
  }

  /// The socket is closed. Before the client has begun to rely on it, it goes on polling.
  fileprivate func socketEnded() {
    let goesOn = state.withLock { state in
      state.socket = nil
      return !state.isSwitched && !state.hasPollsEnded && !state.isClosing
    }
    if goesOn { return }
    end()
  }
}
