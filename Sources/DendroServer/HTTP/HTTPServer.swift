import CDendroMicroHTTPD
import DendroPlatform
import DendroProtocol
import Synchronization

/// Listens at some addresses, and makes an `Exchange` of every request.
///
/// Unchecked: the daemon is set once, before any request comes, and libmicrohttpd's functions may be called on
/// any thread.
final class HTTPServer: @unchecked Sendable {
  let port: UInt16
  private let daemon: OpaquePointer
  private let context: Unmanaged<HTTPContext>
  private let connections: HTTPConnections
  private let lingering: LingeringSockets
  private let listeners: [Listener]
  /// Serves the listeners.
  private let loop: SocketLoop
  /// Nil if clients speak no TLS.
  private let tls: TLSGate?

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
    let loop = try SocketLoop()
    let threads = min(4, max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    let tls = try options.tls.map { files throws(DatabaseServerError) in
      try TLSGate(files, threads: threads, report: options.report)
    }
    let context = Unmanaged.passRetained(
      HTTPContext(
        options, policy, figures, LingeringSockets(loop), refusal: refusal, perform: perform))
    guard let daemon = Self.daemon(context, threads: threads, options) else {
      let reason = String(cString: strerror(errno))
      context.release()
      tls?.end(within: .zero)
      throw DatabaseServerError("cannot start the threads of connections: \(reason)")
    }
    let listeners: [Listener]
    do throws(DatabaseServerError) {
      let connections = context.takeUnretainedValue().connections
      nonisolated(unsafe) let daemon = daemon
      let descriptors = DescriptorLimit.current
      let door = Listener.Door(isOpen: { connections.hasRoom }) { socket, address, size in
        let client = ClientAddress(address)
        guard descriptors.hasRoom(behind: socket), connections.accept(client) else {
          close(socket)
          return
        }
        // Each of the two closes a socket that it does not take.
        let plain = if let tls { tls.open(socket) } else { Optional(socket) }
        guard let plain, MHD_add_connection(daemon, plain, address, size) == dendro_yes else {
          connections.refuse(client)
          return
        }
      }
      listeners = try Listener.open(options.hosts, port: options.port, door)
      try loop.start()
    } catch {
      MHD_stop_daemon(daemon)
      context.release()
      tls?.end(within: .zero)
      throw error
    }
    self.context = context
    connections = context.takeUnretainedValue().connections
    lingering = context.takeUnretainedValue().lingering
    self.daemon = daemon
    self.loop = loop
    self.tls = tls
    self.listeners = listeners
    port = listeners[0].port
    for listener in listeners { loop.add(listener) }
    connections.whenThereIsRoom {
      for listener in listeners { loop.wake(listener) }
    }
  }

  private static func daemon(
    _ context: Unmanaged<HTTPContext>, threads: Int, _ options: DatabaseServerOptions
  ) -> OpaquePointer? {
    var http = dendro_http_options()
    http.thread_count = UInt32(threads)
    // Each thread has a part of them, and they do not come to the threads in equal numbers.
    http.connection_limit = UInt32(clamping: (options.connectionLimit + 1) * threads)
    http.timeout_seconds = UInt32(clamping: max(1, options.idleTimeout.components.seconds))
    http.connection_memory = 12 << 10
    // What this would refuse in 0.9.75, a reader of heads refuses too, and with one answer instead of two or none.
    http.is_strict = HeadReader.isLayoutKnown ? 0 : 1
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

  /// Ends the connections whose clients are too slow. To be called about once a second.
  func tick() {
    connections.tick()
    lingering.tick()
    tls?.tick()
    // The system may have descriptors again.
    for listener in listeners { loop.wake(listener) }
  }

  /// Accepts no more connections.
  func quiesce() {
    loop.end()
    for listener in listeners { listener.waitForEnd() }
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
    connections.endAll(within: .seconds(5))
    MHD_stop_daemon(daemon)
    tls?.end(within: .seconds(5))
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
  let lingering: LingeringSockets
  /// Makes parts of long answers and messages, for each client in turn.
  let parts = FairQueue(threadCount: processorCount)
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
    _ lingering: LingeringSockets, refusal: @escaping @Sendable (Exchange) -> RESTError?,
    perform: @escaping @Sendable (Exchange) -> Void
  ) {
    self.lingering = lingering
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

/// How many processors the system has.
var processorCount: Int { sysconf(Int32(_SC_NPROCESSORS_ONLN)) }
