import CDendroMicroHTTPD
import DendroPlatform
import DendroProtocol
import Synchronization

/// Listens at an address, and makes an `Exchange` of every request.
///
/// Unchecked: the daemon is set once, before any request comes, and libmicrohttpd's functions may be called on
/// any thread.
final class HTTPServer: @unchecked Sendable {
  let port: UInt16
  private let daemon: OpaquePointer
  private let context: Unmanaged<HTTPContext>
  /// The socket that does not listen any more; -1 while it does.
  private let listener = Atomic<Int32>(-1)

  /// - Parameters:
  ///   - refusal: called before a long body is read; why the request is refused whatever the body says.
  ///   - perform: answers a request. Both are called on the server's threads.
  init(
    _ options: DatabaseServerOptions, _ policy: RequestPolicy, _ figures: ServerFigures,
    refusal: @escaping @Sendable (Exchange) -> RESTError?,
    perform: @escaping @Sendable (Exchange) -> Void
  ) throws(DatabaseServerError) {
    // A client that leaves must not end the process.
    if MHD_is_feature_supported(dendro_suppresses_sigpipe) != dendro_yes {
      signal(SIGPIPE, SIG_IGN)
    }
    if let name = options.trustedProxyHeader, !HTTPHeaders.isName(name) {
      throw DatabaseServerError("\(name) is no name of a header field")
    }
    var address = try SocketAddress(host: options.host, port: options.port)
    let context = Unmanaged.passRetained(
      HTTPContext(options, policy, figures, refusal: refusal, perform: perform))
    self.context = context
    let threads = min(4, max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    let daemon = address.withPointer { pointer, isIPv6 in
      var http = dendro_http_options()
      http.address = pointer
      http.port = options.port
      http.thread_count = UInt32(threads)
      http.connection_limit = UInt32(clamping: max(threads, options.connectionLimit))
      http.timeout_seconds = UInt32(clamping: max(1, options.idleTimeout.components.seconds))
      http.connection_memory = 12 << 10
      http.is_ipv6 = isIPv6 ? 1 : 0
      http.handler = { _, connection, target, method, version, upload, uploadCount, exchange in
        guard let connection, let method, let target, let version, let uploadCount,
          let exchange = exchange?.pointee
        else { return dendro_no }
        return Unmanaged<Exchange>.fromOpaque(exchange).takeUnretainedValue().step(
          connection, HeadReader.Line(method: method, target: target, version: version), upload,
          uploadCount)
      }
      http.handler_context = context.toOpaque()
      http.completed = { _, _, exchange, _ in
        guard let raw = exchange?.pointee else { return }
        let exchange = Unmanaged<Exchange>.fromOpaque(raw).takeRetainedValue()
        exchange.complete()
      }
      http.accept = { context, address, _ in
        guard let context else { return dendro_no }
        let server = Unmanaged<HTTPContext>.fromOpaque(context).takeUnretainedValue()
        let isAccepted = server.connections.accept(address.flatMap { ClientAddress($0) })
        return isAccepted ? dendro_yes : dendro_no
      }
      http.connection = { context, connection, own, code in
        guard let context, let connection, let own else { return }
        let server = Unmanaged<HTTPContext>.fromOpaque(context).takeUnretainedValue()
        if code == dendro_connection_started {
          let address = dendro_client_address(connection).flatMap { ClientAddress($0) }
          let begun = server.connections.begin(dendro_connection_socket(connection), address)
          own.pointee = Unmanaged.passRetained(begun).toOpaque()
        } else if let ended = own.pointee {
          own.pointee = nil
          server.connections.end(
            Unmanaged<HTTPConnection>.fromOpaque(ended).takeRetainedValue())
        }
      }
      http.target = { context, target, connection in
        guard let context, let target, let connection, let peer = HTTPConnection.of(connection)
        else { return nil }
        peer.beginHead()
        let exchange = Exchange(
          String(validatingCString: target),
          Unmanaged<HTTPContext>.fromOpaque(context).takeUnretainedValue(), peer)
        return Unmanaged.passRetained(exchange).toOpaque()
      }
      return dendro_http_start(&http)
    }
    guard let daemon else {
      let reason = String(cString: strerror(errno))
      context.release()
      throw DatabaseServerError("cannot listen at \(options.host):\(options.port): \(reason)")
    }
    self.daemon = daemon
    port = dendro_http_port(daemon)
  }

  /// Ends the connections whose clients are too slow. To be called about once a second.
  func tick() { context.takeUnretainedValue().connections.tick() }

  /// Accepts no more connections.
  func quiesce() {
    let socket = MHD_quiesce_daemon(daemon)
    guard socket >= 0 else { return }
    // Closed at the end, since a thread may still be accepting, and the number must not become another file's.
    shutdown(socket, Int32(SHUT_RDWR))
    listener.store(socket, ordering: .relaxed)
  }

  /// Whether a request waits for its answer, or a stream for its end.
  var isBusy: Bool {
    context.takeUnretainedValue().pendingCount.load(ordering: .sequentiallyConsistent) > 0
  }

  /// Whether an answer is not sent to its end.
  var isSending: Bool { context.takeUnretainedValue().activeCount.load(ordering: .relaxed) > 0 }

  /// Parts of long answers that clients have made room for, so far.
  var sentPartCount: Int { context.takeUnretainedValue().sentPartCount.load(ordering: .relaxed) }

  /// Ends all connections. No request may be waiting for its answer.
  func stop() {
    context.takeUnretainedValue().connections.endAll(within: .seconds(5))
    MHD_stop_daemon(daemon)
    let socket = listener.load(ordering: .relaxed)
    if socket >= 0 { close(socket) }
    context.release()
  }
}

extension HTTPConnection {
  /// The one that is kept with libmicrohttpd's own.
  fileprivate static func of(_ connection: OpaquePointer) -> HTTPConnection? {
    dendro_connection_context(connection).map {
      Unmanaged<HTTPConnection>.fromOpaque($0).takeUnretainedValue()
    }
  }
}

/// What all exchanges of a server share.
final class HTTPContext: Sendable {
  let bodyByteLimit: Int
  let bodies: BodyBudget
  let policy: RequestPolicy
  let figures: ServerFigures
  let accessLog: (@Sendable (AccessRecord) -> Void)?
  /// Why a request is refused whatever its body says.
  let refusal: @Sendable (Exchange) -> RESTError?
  let perform: @Sendable (Exchange) -> Void
  let connections: HTTPConnections
  /// The name of the header field that says where clients are, in lower case.
  let trustedProxyHeader: String?
  /// Requests that were accepted and have no answer yet, and streams that wait for an event: those whose
  /// connections may be suspended, with which libmicrohttpd cannot be stopped.
  let pendingCount = Atomic<Int>(0)
  /// Requests that were accepted and whose answers are not sent to the end.
  let activeCount = Atomic<Int>(0)
  /// Parts of long answers that clients have made room for.
  let sentPartCount = Atomic<Int>(0)

  init(
    _ options: DatabaseServerOptions, _ policy: RequestPolicy, _ figures: ServerFigures,
    refusal: @escaping @Sendable (Exchange) -> RESTError?,
    perform: @escaping @Sendable (Exchange) -> Void
  ) {
    self.refusal = refusal
    self.policy = policy
    self.figures = figures
    bodyByteLimit = options.bodyByteLimit
    bodies = BodyBudget(options)
    accessLog = options.accessLog
    connections = HTTPConnections(options)
    trustedProxyHeader = options.trustedProxyHeader?.lowercased()
    self.perform = perform
  }
}
