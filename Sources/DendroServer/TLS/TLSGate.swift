import DendroPlatform
import Dispatch
import Synchronization

/// Speaks TLS with clients.
///
/// What they say goes to the other end of a pair of sockets, so that HTTP and WebSockets are parsed and written there as
/// they are without TLS.
final class TLSGate: Sendable {
  private let files: CertificateFiles
  private let loops: [(loop: SocketLoop, memory: TLSConnection.Memory)]
  private let connections = Mutex<[ObjectIdentifier: TLSConnection]>([:])

  init(
    _ options: TLSOptions, threads: Int, report: @escaping @Sendable (String) -> Void
  ) throws(DatabaseServerError) {
    files = try CertificateFiles(options, report: report)
    var loops: [(SocketLoop, TLSConnection.Memory)] = []
    do throws(DatabaseServerError) {
      for _ in 0..<threads {
        let loop = try SocketLoop()
        try loop.start()
        loops.append((loop, TLSConnection.Memory()))
      }
    } catch {
      for (loop, _) in loops { loop.end() }
      throw error
    }
    self.loops = loops
  }

  /// Takes over a client's socket.
  ///
  /// - Returns: one for what the client says without TLS; nil if the system has none, and the client's is closed.
  func open(_ socket: Int32) -> Int32? {
    var pair: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
      close(socket)
      return nil
    }
    guard let tls = files.certificate.accept(socket) else {
      for descriptor in pair + [socket] { close(descriptor) }
      return nil
    }
    _ = fcntl(pair[1], F_SETFD, FD_CLOEXEC)
    Self.keepAlive(socket)
    let (loop, memory) = loops[Int(socket) % loops.count]
    let connection = TLSConnection(tls, socket, pair[0], loop, memory) { [weak self] ended in
      self?.connections.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(ended)) }
    }
    connections.withLock { $0[ObjectIdentifier(connection)] = connection }
    connection.start()
    return pair[1]
  }

  /// Has the system notice after some minutes that a client is gone without a word, at a moment of each connection's own.
  private static func keepAlive(_ socket: Int32) {
    let size = socklen_t(MemoryLayout<Int32>.size)
    var on: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, size)
    for (option, value) in [
      (TCP_KEEPIDLE, Int32.random(in: 60...120)), (TCP_KEEPINTVL, Int32.random(in: 10...20)),
      (TCP_KEEPCNT, 8), (TCP_NODELAY, 1),
    ] {
      var value = value
      setsockopt(socket, Int32(IPPROTO_TCP), option, &value, size)
    }
  }

  /// Looks for a new certificate, and for connections whose clients do not let them end. To be called about once a second.
  func tick() {
    files.refresh()
    let now = ContinuousClock.now
    for connection in connections.withLock({ Array($0.values) }) { connection.check(at: now) }
  }

  /// Waits until clients have got what was said to them, for a limited time, and ends all connections.
  func end(within limit: Duration) {
    let pause = DispatchSemaphore(value: 0)
    let deadline = ContinuousClock.now + limit
    while connections.withLock({ !$0.isEmpty }), ContinuousClock.now < deadline {
      _ = pause.wait(timeout: .now() + .milliseconds(2))
    }
    for (loop, _) in loops { loop.end() }
  }
}
