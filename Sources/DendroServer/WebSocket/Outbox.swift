import DendroProtocol
import Synchronization

/// Messages that wait for a client, the oldest first, and the one that is being sent.
struct Outbox: Sendable {
  private var messages = EventQueue()
  /// Of those that wait.
  private(set) var byteCount = 0
  /// What is left of the one that is being sent.
  private var sentByteCount = 0
  private var isSending = false
  /// More waits than a session may have.
  private(set) var isOverfull = false
  /// No message is taken any more.
  private(set) var isClosed = false
  private let account: SessionAccount

  init(_ account: SessionAccount) { self.account = account }

  /// Whether none waits.
  var isEmpty: Bool { messages.isEmpty }

  /// - Parameter isPush: whether it may be left out if too much waits already.
  /// - Returns: false if it was left out.
  mutating func append(_ message: AnswerText, isPush: Bool, _ limits: WireLimits) -> Bool {
    if isClosed || isOverfull { return true }
    let count = message.byteCount
    if isPush, !messages.isEmpty, byteCount + count > limits.backlogBytes { return false }
    if !messages.isEmpty || isSending, account.isExceeded(by: count) {
      isOverfull = true
      return true
    }
    account.add(count)
    messages.append(message)
    byteCount += count
    return true
  }

  /// Takes out a message that is sent at once.
  mutating func popFirst() -> AnswerText? {
    guard let message = messages.popFirst() else { return nil }
    byteCount -= message.byteCount
    account.add(-message.byteCount)
    return message
  }

  /// Begins to send the next message, after the one before it. It counts until `noteSending` says otherwise.
  mutating func beginSending() -> AnswerText? {
    account.add(-sentByteCount)
    sentByteCount = 0
    isSending = false
    guard let message = messages.popFirst() else { return nil }
    byteCount -= message.byteCount
    sentByteCount = message.byteCount
    isSending = true
    return message
  }

  /// Notes what is left of the message that is being sent.
  mutating func noteSending(_ count: Int) {
    if isClosed { return }
    account.add(count - sentByteCount)
    sentByteCount = count
  }

  /// Forgets what waits, and takes no more.
  mutating func close() {
    isClosed = true
    messages = EventQueue()
    account.add(-byteCount - sentByteCount)
    byteCount = 0
    sentByteCount = 0
  }
}
