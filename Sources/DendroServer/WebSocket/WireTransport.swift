import DendroProtocol
import Dispatch

/// What carries the messages of one client, both ways: a WebSocket, or polls.
protocol WireTransport: AnyObject, Sendable {
  /// What the client makes the server hold.
  var account: SessionAccount { get }
  /// What waits for the client to be read, in bytes.
  var waitingByteCount: Int { get }
  /// Sends a message, after those before it.
  ///
  /// - Parameter isPush: whether it may be left out if too much waits already.
  /// - Returns: false if it was left out.
  @discardableResult
  func send(_ message: AnswerText, isPush: Bool) -> Bool
  /// Reserves a place behind what waits, for messages that are made later.
  func reserve() -> ReservedPlace
  /// Puts messages, or none, into a place that was reserved here.
  func fill(_ place: Int, _ messages: [AnswerText])
  /// Closes the connection once what waits was sent, and ends the session.
  func close(_ code: UInt16)
  /// Closes the connection soon, whatever waits, and ends the session.
  func drop()
  /// Begins a new second of what the client may send.
  func refill()
  /// Looks at the connection again: whether it may be read from, and what was left out.
  func wake()
}

extension WireTransport {
  @discardableResult
  func send(_ message: AnswerText) -> Bool { send(message, isPush: false) }

  /// Says that a message is none that clients send, and closes the connection.
  func refuseMessage() {
    send(WireText.error("The message is none that clients send."))
    close(1008)
  }
}

/// Where the messages of a WebSocket are for. All calls are made on its loop's thread.
protocol WireReceiver: AnyObject, Sendable {
  /// - Returns: false for what no client sends.
  func handle(_ message: [UInt8]) -> Bool
  /// Refuses a message of which only the request's number is known.
  func refuseTooLarge(_ number: Int64)
  /// Whether so much waits that no more is to be read.
  var isFull: Bool { get }
  /// The client has read what waited.
  func outboxIsEmpty()
  /// The connection is gone. It may not wait.
  func leave()
}

extension WireSession: WireReceiver {
  /// Ends the session where its last write may wait for the disk.
  func leave() { namespace.writing.async { self.end() } }
}

/// What bounds one client.
struct WireLimits: Sendable {
  /// Of one message.
  let messageBytes: Int
  /// Of pushes that wait: beyond that they are left out, and the client is not read from.
  let backlogBytes: Int
  /// Beyond that the client is not read from until the next second.
  let messagesASecond: Int
  /// What a message may take to come; a long one has more.
  let messageTimeout: Duration
  /// Beyond that a client is closed that takes nothing of what waits for it.
  let readTimeout: Duration

  init(_ options: DatabaseServerOptions) {
    messageBytes = options.messageByteLimit
    backlogBytes = options.backlogByteLimit
    messagesASecond = options.messageRateLimit ?? .max
    messageTimeout = options.messageTimeout
    readTimeout = options.readTimeout
  }
}
