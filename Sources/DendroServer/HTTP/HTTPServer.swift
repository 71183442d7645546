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

  /// - Parameter perform: answers a request; called on one of the server's threads.
  init(
    _ options: DatabaseServerOptions, _ policy: RequestPolicy, _ figures: ServerFigures,
    perform: @escaping @Sendable (Exchange) -> Void
  ) throws(DatabaseServerError) {
    // A client that leaves must not end the process.
    if MHD_is_feature_supported(dendro_suppresses_sigpipe) != dendro_yes {
      signal(SIGPIPE, SIG_IGN)
    }
    var address = try SocketAddress(host: options.host, port: options.port)
    let context = Unmanaged.passRetained(HTTPContext(options, policy, figures, perform))
    self.context = context
    let threads = min(4, max(2, processorCount))
    let daemon = address.withPointer { pointer, isIPv6 in
      var http = dendro_http_options()
      http.address = pointer
      http.port = options.port
      http.thread_count = UInt32(threads)
      http.connection_limit = UInt32(clamping: max(threads, options.connectionLimit))
      http.timeout_seconds = UInt32(clamping: max(1, options.idleTimeout.components.seconds))
      http.connection_memory = 12 << 10
      http.is_ipv6 = isIPv6 ? 1 : 0
      http.handler = { _, connection, _, method, version, upload, uploadCount, exchange in
        guard let connection, let uploadCount, let exchange = exchange?.pointee else {
          return dendro_no
        }
        return Unmanaged<Exchange>.fromOpaque(exchange).takeUnretainedValue().step(
          connection, (method, version), upload, uploadCount)
      }
      http.handler_context = context.toOpaque()
      http.completed = { _, _, exchange, _ in
        guard let raw = exchange?.pointee else { return }
        let exchange = Unmanaged<Exchange>.fromOpaque(raw).takeRetainedValue()
        exchange.complete()
      }
      http.accept = { context, _, _ in
        guard let context else { return dendro_no }
        let server = Unmanaged<HTTPContext>.fromOpaque(context).takeUnretainedValue()
        return server.connections.accept() ? dendro_yes : dendro_no
      }
      http.connection = { context, connection, _, code in
        guard let context, let connection else { return }
        let server = Unmanaged<HTTPContext>.fromOpaque(context).takeUnretainedValue()
        let socket = dendro_connection_socket(connection)
        if code == dendro_connection_started {
          server.connections.begin(socket)
        } else {
          server.connections.end(socket)
        }
      }
      http.target = { context, target, _ in
        guard let context, let target else { return nil }
        let exchange = Exchange(
          String(validatingCString: target),
          Unmanaged<HTTPContext>.fromOpaque(context).takeUnretainedValue())
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

/// What all exchanges of a server share.
final class HTTPContext: Sendable {
  let bodyByteLimit: Int
  let bodiesByteLimit: Int
  /// The first bytes of a body, which count in no sum.
  static let freeBodyByteCount = 16 << 10
  /// The others, of all bodies.
  let bodiesByteCount = Atomic<Int>(0)
  let policy: RequestPolicy
  let figures: ServerFigures
  let accessLog: (@Sendable (AccessRecord) -> Void)?
  let perform: @Sendable (Exchange) -> Void
  let connections = HTTPConnections()
  /// Requests that were accepted and have no answer yet, and streams that wait for an event: those whose
  /// connections may be suspended, with which libmicrohttpd cannot be stopped.
  let pendingCount = Atomic<Int>(0)
  /// Requests that were accepted and whose answers are not sent to the end.
  let activeCount = Atomic<Int>(0)
  /// Parts of long answers that clients have made room for.
  let sentPartCount = Atomic<Int>(0)

  init(
    _ options: DatabaseServerOptions, _ policy: RequestPolicy, _ figures: ServerFigures,
    _ perform: @escaping @Sendable (Exchange) -> Void
  ) {
    self.policy = policy
    self.figures = figures
    bodyByteLimit = options.bodyByteLimit
    bodiesByteLimit = options.bodiesByteLimit
    accessLog = options.accessLog
    self.perform = perform
  }
}

/// How many processors the system has.
var processorCount: Int { sysconf(Int32(_SC_NPROCESSORS_ONLN)) }
