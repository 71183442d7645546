import CDendroMicroHTTPD
import DendroPlatform
import DendroProtocol

/// Turns requests for `/.ws` into WebSockets.
final class WebSocketService: Sendable {
  private let loop: SocketLoop
  private let limits: WireLimits
  private let figures: ServerFigures

  init(_ options: DatabaseServerOptions, _ figures: ServerFigures) throws(DatabaseServerError) {
    let loop = try SocketLoop()
    try loop.start()
    self.loop = loop
    limits = WireLimits(options)
    self.figures = figures
  }

  deinit { loop.end() }

  /// Whether connections are open.
  var isBusy: Bool { loop.clientCount > 0 }

  /// The connections that are open.
  var count: Int { loop.clientCount }

  func end() { loop.end() }

  /// Looks for clients that are too slow.
  func tick() { loop.tick() }

  /// Answers a request with the upgrade.
  func open(
    _ handshake: Handshake, _ exchange: Exchange, _ lease: NamespaceLease, _ service: RESTService
  ) {
    service.sessions.end(handshake.lastSession, in: lease.namespace) { [self] in
      answer(handshake, exchange, lease, service)
    }
  }

  private func answer(
    _ handshake: Handshake, _ exchange: Exchange, _ lease: NamespaceLease, _ service: RESTService
  ) {
    let namespace = lease.namespace
    let address = exchange.clientAddress
    let parts = exchange.context.parts
    // One that changes over from polling has its session already.
    if service.polls(ofSession: handshake.session, in: namespace) == nil,
      let error = service.sessions.refusal(address)
    {
      return exchange.finish(RESTAnswer(error))
    }
    let upgrade = Unmanaged.passRetained(
      PendingUpgrade { [self] socket, early in
        let connection = WebSocketConnection(
          socket, loop, parts, early: early, limits, service.sessions.account(address), figures)
        if let id = handshake.session {
          if let upgrade = service.polls(ofSession: id, in: namespace)?.upgrade(to: connection) {
            return connection.start(upgrade)
          }
          // A client with a session that is over would wait for an acknowledgement.
          connection.send(WireText.reset(host: handshake.host))
          connection.close(1000)
          return connection.start(ResetClient())
        }
        let session = WireSession(lease.namespace.makeSessionID(), lease, service, connection)
        let isAdded = service.sessions.add(session, address)
        if isAdded {
          connection.send(session.hello(host: handshake.host))
        } else {
          session.giveUpMessages()
          connection.close(1013)
        }
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

/// A client that was told to connect again. What it sends until then is passed over.
private final class ResetClient: WireReceiver {
  let isFull = false

  func handle(_ message: [UInt8]) -> Bool { true }
  func refuseTooLarge(_ number: Int64) {}
  func outboxIsEmpty() {}
  func leave() {}
}

/// What is done with the socket once the upgrade was sent. It lives as long as its exchange.
final class PendingUpgrade: Sendable {
  let body: @Sendable (Int32, [UInt8]) -> Void

  init(_ body: @escaping @Sendable (Int32, [UInt8]) -> Void) { self.body = body }
}
