import DendroProtocol
import Synchronization

/// Messages that wait for a client, the oldest first.
struct Outbox: Sendable {
  private var messages = EventQueue()
  private(set) var byteCount = 0
  /// More waits than a session may have.
  private(set) var isOverfull = false
  /// No message is taken any more.
  private(set) var isClosed = false

  var isEmpty: Bool { messages.isEmpty }

  /// - Parameter isPush: whether it may be left out if too much waits already.
  /// - Returns: false if it was left out.
  mutating func append(
    _ message: AnswerText, isPush: Bool, _ limits: WireLimits, _ figures: ServerFigures
  ) -> Bool {
    if isClosed || isOverfull { return true }
    let count = message.byteCount
    if isPush, !messages.isEmpty, byteCount + count > limits.backlogBytes { return false }
    if !messages.isEmpty, byteCount + count > limits.outboxBytes {
      isOverfull = true
      return true
    }
    figures.outboxByteCount.wrappingAdd(count, ordering: .relaxed)
    messages.append(message)
    byteCount += count
    return true
  }

  mutating func popFirst(_ figures: ServerFigures) -> AnswerText? {
    guard let message = messages.popFirst() else { return nil }
    byteCount -= message.byteCount
    figures.outboxByteCount.wrappingSubtract(message.byteCount, ordering: .relaxed)
    return message
  }

  /// Forgets what waits, and takes no more.
  mutating func close(_ figures: ServerFigures) {
    isClosed = true
    messages = EventQueue()
    figures.outboxByteCount.wrappingSubtract(byteCount, ordering: .relaxed)
    byteCount = 0
  }
}
