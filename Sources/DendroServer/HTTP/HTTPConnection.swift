import CDendroWSLay
import DendroPlatform
import Synchronization

/// One connection of a client, and until when it may be at what it is at.
///
/// libmicrohttpd ends a connection that is silent, but not one that sends a byte now and then. So a head has a deadline as
/// a whole, and a body has to come at a least rate.
final class HTTPConnection: Sendable {
  let socket: Int32
  private let limits: Limits
  private let state: Mutex<State>

  struct Limits: Sendable {
    let head: Duration
    /// Between an answer and the next request.
    let silence: Duration
    /// In which so many bytes of a body have to come.
    let bodyInterval: Duration
    let bodyByteCount: Int

    init(_ options: DatabaseServerOptions) {
      head = options.headTimeout
      silence = options.idleTimeout
      bodyInterval = options.bodyRateInterval
      bodyByteCount = Int(Double(options.bodyRateMin) * (options.bodyRateInterval / .seconds(1)))
    }
  }

  private enum Phase {
    /// No request line has come.
    case waiting
    case head
    case body
    /// The request is complete, and the server owes its answer.
    case answering
    case givenUp
  }

  private struct State {
    var phase = Phase.waiting
    var deadline: ContinuousClock.Instant
    /// Of a body, since its last deadline.
    var byteCount = 0
    /// Whether the client was found to send no more, and nothing has happened since.
    var hasEnded = false
    /// Where the client is for which the connection counts; nil if it counts for none.
    var address: ClientAddress?

    mutating func begin(_ phase: Phase) {
      self.phase = phase
      hasEnded = false
    }
  }

  init(_ socket: Int32, _ limits: Limits, _ address: ClientAddress?) {
    self.socket = socket
    self.limits = limits
    state = Mutex(State(deadline: .now + limits.head, address: address))
  }

  // MARK: A request

  func beginHead() {
    let latest = ContinuousClock.now + limits.head
    state.withLock { state in
      guard state.phase == .waiting else { return }
      state.begin(.head)
      state.deadline = min(state.deadline, latest)
    }
  }

  /// The head is complete, and a body follows.
  func beginBody() {
    let deadline = ContinuousClock.now + limits.bodyInterval
    state.withLock { state in
      guard state.phase != .givenUp else { return }
      state.begin(.body)
      state.deadline = deadline
      state.byteCount = 0
    }
  }

  func noteBody(_ byteCount: Int) {
    state.withLock { state in
      state.byteCount += byteCount
      state.hasEnded = false
    }
  }

  /// The whole request has come, or no more of it is read.
  func beginAnswer() {
    state.withLock { state in
      guard state.phase != .givenUp else { return }
      state.begin(.answering)
    }
  }

  /// The answer was sent. The next request may follow.
  func endAnswer() {
    let deadline = ContinuousClock.now + limits.silence + limits.head
    state.withLock { state in
      guard state.phase != .givenUp else { return }
      state.begin(.waiting)
      state.deadline = deadline
    }
  }

  // MARK: Patience

  /// Whether the client was too slow.
  var isGivenUp: Bool { state.withLock { $0.phase == .givenUp } }

  /// Ends the connection if its deadline has passed. Nobody may close the socket meanwhile.
  func check(at now: ContinuousClock.Instant) {
    let answer = state.withLock { state -> StaticString? in
      guard state.deadline <= now else { return nil }
      switch state.phase {
      case .answering, .givenUp: return nil
      case .body where state.byteCount >= limits.bodyByteCount:
        state.byteCount = 0
        state.deadline = now + limits.bodyInterval
        return nil
      case .head, .body:
        state.phase = .givenUp
        return Self.timeout
      case .waiting:
        state.phase = .givenUp
        // A client that has asked for nothing would take it for the answer to its next request.
        return ""
      }
    }
    guard let answer else { return }
    // libmicrohttpd sends nothing before the request is complete.
    _ = send(
      socket, answer.utf8Start, answer.utf8CodeUnitCount, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Whether more of a request may come.
  var awaitsInput: Bool {
    state.withLock { $0.phase != .answering && $0.phase != .givenUp }
  }

  /// Shuts the connection down if its client has shut down writing. The first call notes this, and the second one acts, unless
  /// a part of a request has come or an answer was sent in between. The caller keeps the socket open meanwhile.
  ///
  /// libmicrohttpd reads a socket when epoll reports an edge, and stops after a read that returns fewer bytes than it
  /// has asked for. So it misses an end of the input that has come together with the last bytes.
  func noteEnd() {
    var byte: UInt8 = 0
    guard recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) == 0 else { return }
    let isOver = state.withLock { state in
      guard state.phase != .answering, state.phase != .givenUp else { return false }
      defer { state.hasEnded = true }
      return state.hasEnded
    }
    if isOver { shutdown(socket, Int32(SHUT_RDWR)) }
  }

  /// Whether the client has shut down writing, or has broken the connection, whatever it has sent before. The caller keeps the
  /// socket open meanwhile.
  var hasLeft: Bool { Self.hasLeft(socket) }

  /// As `hasLeft`, of the client at a socket.
  static func hasLeft(_ socket: Int32) -> Bool {
    let ends = Int16(POLLHUP | POLLERR) | dendro_ended
    var state = pollfd(fd: socket, events: ends, revents: 0)
    return poll(&state, 1, 0) == 1 && state.revents & ends != 0
  }

  private static let timeout: StaticString =
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

  // MARK: The client

  var address: ClientAddress? {
    get { state.withLock { $0.address } }
    set { state.withLock { $0.address = newValue } }
  }
}
