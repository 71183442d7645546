import DendroProtocol
import DendroTree
import Synchronization

// The client's messages, in their order, by one thread at a time.

extension PollConnection {
  fileprivate enum Next: Sendable {
    case item(Inbox.Item)
    /// Something has changed since it was looked at.
    case again
    case none
  }

  /// Hands over the messages that wait, as far as the session takes them.
  func handleWaiting() {
    let session = state.withLock { state -> WireSession? in
      guard !state.isHandling else {
        state.isAskedAgain = true
        return nil
      }
      state.isHandling = state.session != nil
      return state.session
    }
    guard let session else { return }
    while true {
      let isFull = session.isFull
      let next = state.withLock { state in
        let next = state.nextItem(isFull: isFull)
        count(&state)
        return next
      }
      switch next {
      case .none: return
      case .again: break
      case .item(.tooLarge(let number)): session.refuseTooLarge(number)
      case .item(.message(let message)):
        if endsTransmission(message) {
          endPolls()
          break
        }
        figures.noteMessage(message.count)
        if !session.handle(message) { refuseMessage() }
      }
    }
  }

  private func endsTransmission(_ message: [UInt8]) -> Bool {
    // Such a message is short: longer ones are not read twice.
    guard message.count < 64, case .endOfTransmission = WireMessage(message) else { return false }
    return true
  }

  /// What the client has sent by polls is handled. What it has sent over the WebSocket comes next.
  private func endPolls() {
    let socket = state.withLock { state in
      state.hasPollsEnded = true
      for item in state.later { state.inbox.append(item) }
      state.later = []
      state.laterByteCount = 0
      return state.socket
    }
    socket?.wake()
  }
}

extension PollConnection.State {
  fileprivate mutating func nextItem(isFull: Bool) -> PollConnection.Next {
    if !isFull, allowance > 0, !isClosing, let item = inbox.popFirst() {
      allowance -= 1
      return .item(item)
    }
    if isAskedAgain {
      isAskedAgain = false
      return .again
    }
    isHandling = false
    return .none
  }
}
