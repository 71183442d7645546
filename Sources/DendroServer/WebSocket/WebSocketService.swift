import CDendroMicroHTTPD
import DendroPlatform
import DendroProtocol
import Synchronization

/// Turns requests for `/.ws` into WebSockets, and keeps the sessions.
final class WebSocketService: Sendable {
  private let loop = SocketLoop()
  private let sessions = Mutex<[String: WireSession]>([:])
  private let limits: WebSocketLimits
  private let sessionLimit: Int
  private let figures: ServerFigures

  init(_ options: DatabaseServerOptions, _ figures: ServerFigures) {
    limits = WebSocketLimits(
      messageBytes: options.messageByteLimit, backlogBytes: options.backlogByteLimit,
      outboxBytes: options.sessionByteLimit, messagesASecond: options.messageRateLimit ?? .max)
    sessionLimit = options.sessionLimit
    self.figures = figures
    loop.start()
  }

  deinit { loop.end() }

  /// Whether connections are open.
  var isBusy: Bool { loop.clientCount > 0 }

  var all: [WireSession] { sessions.withLock { Array($0.values) } }

  func end() { loop.end() }

  func remove(_ session: WireSession) {
    sessions.withLock { _ = $0.removeValue(forKey: session.id) }
  }

  /// Answers a request with the upgrade.
  func open(
    _ handshake: Handshake, _ exchange: Exchange, _ namespace: Namespace, _ service: RESTService
  ) {
    if let last = handshake.lastSession, let session = sessions.withLock({ $0[last] }) {
      // What was to be written at its end is written before the new connection is served.
      session.end()
      session.close()
    }
    guard loop.clientCount < sessionLimit else {
      return exchange.finish(
        RESTAnswer(RESTError(503, "The server has \(sessionLimit) sessions, which is its limit.")))
    }
    let upgrade = Unmanaged.passRetained(
      PendingUpgrade { [self] socket, early in
        var random = SystemRandomNumberGenerator()
        let id = String(random.next(), radix: 36) + String(random.next(), radix: 36)
        let connection = WebSocketConnection(socket, loop, early: early, limits, figures)
        let session = WireSession(id, namespace, service, connection)
        sessions.withLock { $0[id] = session }
        session.begin(host: handshake.host)
        connection.start(session)
      })
    let response = MHD_create_response_for_upgrade(
      { upgrade, _, _, early, earlyCount, socket, handle in
        guard let upgrade, let handle else { return }
        let bytes = early.map { Array(UnsafeRawBufferPointer(start: $0, count: earlyCount)) } ?? []
        // With a socket of its own, the WebSocket does not need what libmicrohttpd keeps for a connection: most of
        // its memory.
        let own = dendro_duplicate(socket)
        if own >= 0 {
          Unmanaged<PendingUpgrade>.fromOpaque(upgrade).takeUnretainedValue().body(own, bytes)
        }
        dendro_upgrade_close(handle)
      }, upgrade.toOpaque())
    guard let response else {
      upgrade.release()
      return exchange.finish(RESTAnswer(.internalError))
    }
    MHD_add_response_header(response, "Upgrade", "websocket")
    MHD_add_response_header(response, "Sec-WebSocket-Accept", handshake.accept)
    exchange.finish(
      .custom(Exchange.CustomAnswer(status: 101, response: response, upgrade: upgrade)))
  }
}

/// What bounds one WebSocket.
struct WebSocketLimits: Sendable {
  /// Of one message.
  let messageBytes: Int
  /// Of pushes that wait: beyond that they are left out, and the client is not read from.
  let backlogBytes: Int
  /// Of all that waits: beyond that the connection is closed.
  let outboxBytes: Int
  /// Beyond that the client is not read from until the next second.
  let messagesASecond: Int
}

/// What is done with the socket once the upgrade was sent. It lives as long as its exchange.
final class PendingUpgrade: Sendable {
  let body: @Sendable (Int32, [UInt8]) -> Void

  init(_ body: @escaping @Sendable (Int32, [UInt8]) -> Void) { self.body = body }
}
