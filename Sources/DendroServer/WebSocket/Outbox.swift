import Dendro
import DendroProtocol
import DendroTree

/// Messages that wait for a client, the oldest first, and the one that is being sent.
///
/// A place can be reserved for messages that are made later: those behind it wait for them.
struct Outbox: Sendable {
  private enum Item: Sendable {
    case message(AnswerText)
    case place(Int)
  }

  private var items = Queue<Item>()
  /// What has come for reserved places.
  private var filled: [Int: [AnswerText]] = [:]
  /// What came for the place that was at the front.
  private var front = Queue<AnswerText>()
  private var lastPlace = 0
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

  /// Whether nothing waits, and no place is reserved.
  var isEmpty: Bool { front.isEmpty && items.isEmpty }

  /// Whether a message can be sent.
  var hasNext: Bool {
    if !front.isEmpty { return true }
    return switch items.first {
    case .message?: true
    case .place(let number)?: filled[number] != nil
    case nil: false
    }
  }

  /// - Parameter isPush: whether it may be left out if too much waits already.
  /// - Returns: false if it was left out.
  mutating func append(_ message: AnswerText, isPush: Bool, _ limits: WireLimits) -> Bool {
    if isClosed || isOverfull { return true }
    let count = message.byteCount
    if isPush, !isEmpty, byteCount + count > limits.backlogBytes { return false }
    if !isEmpty || isSending, account.isExceeded(by: count) {
      isOverfull = true
      return true
    }
    account.add(count)
    items.append(.message(message))
    byteCount += count
    return true
  }

  // MARK: Places

  /// Reserves a place behind what waits now.
  mutating func reserve() -> Int {
    lastPlace += 1
    if !isClosed { items.append(.place(lastPlace)) }
    return lastPlace
  }

  /// Puts messages, or none, into a place.
  mutating func fill(_ place: Int, _ messages: [AnswerText]) {
    if isClosed { return }
    filled[place] = messages
    let count = messages.reduce(0) { $0 + $1.byteCount }
    account.add(count)
    byteCount += count
  }

  private mutating func popNext() -> AnswerText? {
    while true {
      if let message = front.popFirst() { return message }
      switch items.first {
      case .message(let message)?:
        _ = items.popFirst()
        return message
      case .place(let number)?:
        guard let messages = filled.removeValue(forKey: number) else { return nil }
        _ = items.popFirst()
        for message in messages { front.append(message) }
      case nil: return nil
      }
    }
  }

  // MARK: Sending

  /// Takes out a message that is sent at once.
  mutating func popFirst() -> AnswerText? {
    guard let message = popNext() else { return nil }
    byteCount -= message.byteCount
    account.add(-message.byteCount)
    return message
  }

  /// Begins to send the next message, after the one before it. It counts until `noteSending` says otherwise.
  mutating func beginSending() -> AnswerText? {
    account.add(-sentByteCount)
    sentByteCount = 0
    isSending = false
    guard let message = popNext() else { return nil }
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
    items.removeAll()
    front.removeAll()
    filled = [:]
    account.add(-byteCount - sentByteCount)
    byteCount = 0
    sentByteCount = 0
  }
}

/// A place among the messages to a client, for some that are made later. Those behind it wait for them.
struct ReservedPlace: Sendable {
  let transport: any WireTransport
  let number: Int

  /// Puts messages, or none, into the place. To be called once.
  func fill(_ messages: [AnswerText]) { transport.fill(number, messages) }
}
