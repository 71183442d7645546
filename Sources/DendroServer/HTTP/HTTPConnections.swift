import CDendroWSLay
import DendroPlatform
import Dispatch
import Synchronization

/// The connections of a server: how many there are, and whose.
///
/// They are ended before libmicrohttpd is stopped. None must be open then: libmicrohttpd 0.9.75 queues no response while
/// it stops, and crashes if it refuses a malformed request by itself.
final class HTTPConnections: Sendable {
  fileprivate struct State {
    /// Accepted, and not begun.
    var acceptedCount = 0
    var connections: [Int32: HTTPConnection] = [:]
    var counts: [ClientAddress: Int] = [:]
    var acceptsMore = true
    /// Whether there was no room when a connection came.
    var isAwaited = false
    var roomIsThere: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())
  private let limits: HTTPConnection.Limits
  private let limit: Int
  private let addressLimit: Int
  /// Whether a header field says where clients are, so that connections are a proxy's until a head has come.
  private let isProxied: Bool

  init(_ options: DatabaseServerOptions) {
    limits = HTTPConnection.Limits(options)
    limit = options.connectionLimit
    addressLimit = options.connectionLimitByAddress ?? max(1, options.connectionLimit / 4)
    isProxied = options.trustedProxyHeader != nil
  }

  /// Whether there is room for one more connection. If not, what `whenThereIsRoom` was given is called once there is.
  var hasRoom: Bool {
    state.withLock { state in
      let hasRoom = state.acceptedCount + state.connections.count < limit
      if !hasRoom { state.isAwaited = true }
      return hasRoom
    }
  }

  func whenThereIsRoom(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.roomIsThere = body }
  }

  /// Whether one more connection is accepted. If so, `begin` or `refuse` follows.
  func accept(_ address: ClientAddress?) -> Bool {
    state.withLock { state in
      guard state.acceptsMore, isProxied || state.count(address, limit: addressLimit) else {
        return false
      }
      state.acceptedCount += 1
      return true
    }
  }

  /// A connection that was accepted could not begin.
  func refuse(_ address: ClientAddress?) {
    state.withLock { state in
      state.acceptedCount -= 1
      if !isProxied, let address { state.uncount(address) }
    }
  }

  func begin(_ socket: Int32, _ address: ClientAddress?) -> HTTPConnection {
    let connection = HTTPConnection(socket, limits, isProxied ? nil : address)
    state.withLock { state in
      state.acceptedCount -= 1
      state.connections[socket] = connection
    }
    return connection
  }

  /// The socket is closed next.
  func end(_ connection: HTTPConnection) {
    let wake = state.withLock { state -> (@Sendable () -> Void)? in
      state.connections[connection.socket] = nil
      state.uncount(connection)
      defer { state.isAwaited = false }
      return state.isAwaited ? state.roomIsThere : nil
    }
    wake?()
  }

  /// Counts the connection of a proxy for the client whose request it brings, until that has its answer.
  ///
  /// - Returns: false if the client has too many requests under way.
  func lend(_ connection: HTTPConnection, to address: ClientAddress) -> Bool {
    state.withLock { state in
      state.uncount(connection)
      guard state.count(address, limit: addressLimit) else { return false }
      connection.address = address
      return true
    }
  }

  /// The request of the connection has its answer.
  func endAnswer(_ connection: HTTPConnection) {
    if isProxied { state.withLock { $0.uncount(connection) } }
    connection.endAnswer()
  }

  /// Ends the connections whose clients are too slow, or have left. To be called about once a second.
  func tick() {
    let now = ContinuousClock.now
    // Under the lock no socket is closed.
    state.withLock { state in
      var polled: [pollfd] = []
      for connection in state.connections.values {
        connection.check(at: now)
        guard connection.awaitsInput else { continue }
        polled.append(pollfd(fd: connection.socket, events: dendro_ended, revents: 0))
      }
      guard poll(&polled, nfds_t(polled.count), 0) > 0 else { return }
      for end in polled where end.revents != 0 { state.connections[end.fd]?.noteEnd() }
    }
  }

  // MARK: The end

  /// Accepts no more connections, ends those that there are, and waits until libmicrohttpd is done with them.
  ///
  /// - Parameter limit: what a connection is waited for at most.
  func endAll(within limit: Duration) {
    let pause = DispatchSemaphore(value: 0)
    let deadline = ContinuousClock.now + limit
    while shutDown(), ContinuousClock.now < deadline {
      _ = pause.wait(timeout: .now() + .milliseconds(1))
    }
  }

  /// - Returns: whether there are connections.
  private func shutDown() -> Bool {
    state.withLock { state in
      state.acceptsMore = false
      state.roomIsThere = nil
      for socket in state.connections.keys { shutdown(socket, Int32(SHUT_RDWR)) }
      return state.acceptedCount > 0 || !state.connections.isEmpty
    }
  }
}

extension HTTPConnections.State {
  /// Counts one more connection of a client.
  ///
  /// - Returns: false if there are as many as may be.
  fileprivate mutating func count(_ address: ClientAddress?, limit: Int) -> Bool {
    guard let address else { return true }
    let count = counts[address, default: 0]
    guard count < limit else { return false }
    counts[address] = count + 1
    return true
  }

  fileprivate mutating func uncount(_ connection: HTTPConnection) {
    guard let address = connection.address else { return }
    connection.address = nil
    uncount(address)
  }

  fileprivate mutating func uncount(_ address: ClientAddress) {
    guard let count = counts[address], count > 1 else {
      counts[address] = nil
      return
    }
    counts[address] = count - 1
  }
}
