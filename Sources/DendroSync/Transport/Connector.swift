import DendroPlatform

/// Makes the TCP connections of this client.
struct Connector {
  let waiter: Waiter
  let deadline: ContinuousClock.Instant
  let isOver: () -> Bool

  /// An address that does not answer delays the next one so long.
  private static let headStart = Duration.milliseconds(250)

  /// Connects to whichever address of a host answers first. IPv6 and IPv4 take turns.
  ///
  /// - Returns: the socket, which does not block.
  func connect(to host: String, _ port: Int) throws(TransportError) -> Int32 {
    try connect(to: Self.addresses(of: host, port))
  }

  /// Connects to whichever address answers first.
  ///
  /// - Parameter addresses: the one to begin with first.
  /// - Returns: the socket, which does not block.
  func connect(to addresses: [Address]) throws(TransportError) -> Int32 {
    var waiting = addresses[...]
    var racing: [Int32] = []
    defer { for socket in racing { close(socket) } }
    var failure = TransportError.ended
    var nextStart = ContinuousClock.now
    while true {
      if isOver() { throw .interrupted }
      let now = ContinuousClock.now
      if now >= deadline { throw .timedOut }
      if racing.isEmpty || now >= nextStart, let address = waiting.popFirst() {
        nextStart = now + Self.headStart
        do throws(TransportError) {
          racing.append(try Self.begin(address))
        } catch {
          failure = error
        }
        continue
      }
      if racing.isEmpty { throw failure }
      waiter.wait(
        forAny: racing, until: waiting.isEmpty ? deadline : min(deadline, nextStart))
      for socket in racing {
        guard let result = Self.result(of: socket) else { continue }
        racing.removeAll { $0 == socket }
        if result == 0 {
          Self.configure(socket)
          return socket
        }
        close(socket)
        failure = .system("connect", result)
        nextStart = .now
      }
    }
  }

  struct Address {
    fileprivate var storage = sockaddr_storage()
    fileprivate var length: socklen_t = 0
    fileprivate var family: Int32 = 0
  }

  /// A host as the system's calls take it: an IPv6 address has brackets in URLs alone.
  static func withoutBrackets(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  /// All addresses of a host.
  static func addresses(
    of host: String, _ port: Int
  ) throws(TransportError) -> [Address] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(withoutBrackets(host), "\(port)", &hints, &list)
    guard code == 0 else { throw .unknownHost(host, String(cString: gai_strerror(code))) }
    defer { freeaddrinfo(list) }
    var found: [Int32: [Address]] = [:]
    var families: [Int32] = []
    var next = list
    while let info = next?.pointee {
      next = info.ai_next
      guard let source = info.ai_addr, info.ai_addrlen <= MemoryLayout<sockaddr_storage>.size else {
        continue
      }
      var address = Address(length: info.ai_addrlen, family: info.ai_family)
      withUnsafeMutableBytes(of: &address.storage) {
        $0.copyMemory(from: UnsafeRawBufferPointer(start: source, count: Int(info.ai_addrlen)))
      }
      if found[info.ai_family] == nil { families.append(info.ai_family) }
      found[info.ai_family, default: []].append(address)
    }
    // By turns, that of the first one first, as the system's order has it.
    let count = found.values.map(\.count).max() ?? 0
    return (0..<count).flatMap { index in
      families.compactMap { family in
        found[family].flatMap { index < $0.count ? $0[index] : nil }
      }
    }
  }

  /// Begins to connect.
  private static func begin(_ address: Address) throws(TransportError) -> Int32 {
    let socket = socket(address.family, SOCK_STREAM)
    guard socket >= 0 else { throw .last("socket") }
    let result = withUnsafePointer(to: address.storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        DendroPlatform.connect(socket, $0, address.length)
      }
    }
    if result != 0, errno != EINPROGRESS {
      let failure = TransportError.last("connect")
      close(socket)
      throw failure
    }
    return socket
  }

  /// A socket that does not block; -1 with `errno` if there is none.
  static func socket(_ family: Int32, _ type: __socket_type) -> Int32 {
    let socket = DendroPlatform.socket(family, Int32(type.rawValue), 0)
    guard socket >= 0 else { return -1 }
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL, 0) | O_NONBLOCK)
    return socket
  }

  /// Whether a socket is connected (0) or has failed; nil if that is not known yet.
  private static func result(of socket: Int32) -> Int32? {
    var polled = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
    guard poll(&polled, 1, 0) > 0 else { return nil }
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size)
    return error
  }

  /// A server that is gone without a word is noticed after a minute or two.
  private static func configure(_ socket: Int32) {
    func set(_ level: Int32, _ option: Int32, _ value: Int32) {
      var value = value
      setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    let tcp = Int32(IPPROTO_TCP)
    set(tcp, TCP_NODELAY, 1)
    set(SOL_SOCKET, SO_KEEPALIVE, 1)
    set(tcp, TCP_KEEPIDLE, 45)
    set(tcp, TCP_KEEPINTVL, 15)
    set(tcp, TCP_KEEPCNT, 4)
    set(tcp, TCP_USER_TIMEOUT, 60_000)
  }
}
