import DendroPlatform

/// Sockets that do not block, for lines.
enum LineSocket {
  /// Why there is none.
  struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ what: String, _ code: Int32 = errno) {
      description = "\(what): \(String(cString: strerror(code)))"
    }
  }

  /// Listens at a host's first address.
  ///
  /// - Parameter port: 0 lets the system choose one.
  static func listen(_ host: String, port: UInt16) throws(Failure) -> Int32 {
    try withAddresses(of: host, port: port, AI_PASSIVE) { (address) throws(Failure) in
      let descriptor = try open(address)
      var on: Int32 = 1
      setsockopt(
        descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
      guard bind(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0,
        DendroPlatform.listen(descriptor, 64) == 0
      else {
        let failure = Failure("listen at \(host):\(port)")
        close(descriptor)
        throw failure
      }
      return descriptor
    }
  }

  /// The port at which a socket listens; 0 if it does not.
  static func port(of descriptor: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { storage in
      let raw = UnsafeMutableRawPointer(storage)
      guard
        getsockname(descriptor, raw.assumingMemoryBound(to: sockaddr.self), &size) == 0
      else { return 0 }
      // At the same place in both families' addresses.
      return UInt16(bigEndian: raw.load(fromByteOffset: 2, as: UInt16.self))
    }
  }

  /// The next connection that has come; nil if there is none.
  static func accept(_ listener: Int32) -> Int32? {
    while true {
      let descriptor = DendroPlatform.accept(listener, nil, nil)
      guard descriptor >= 0 else {
        if errno == EINTR || errno == ECONNABORTED { continue }
        return nil
      }
      prepare(descriptor)
      return descriptor
    }
  }

  /// Connects, which may wait for so long.
  static func connect(
    _ host: String, port: UInt16, patience: Duration
  ) throws(Failure) -> Int32 {
    let deadline = ContinuousClock.now + patience
    return try withAddresses(of: host, port: port, 0) { (address) throws(Failure) in
      let descriptor = try open(address)
      var code: Int32 = 0
      if DendroPlatform.connect(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen)
        != 0
      {
        code = errno == EINPROGRESS ? outcome(of: descriptor, deadline) : errno
      }
      guard code == 0 else {
        close(descriptor)
        throw Failure("connect to \(host):\(port)", code)
      }
      return descriptor
    }
  }

  private static func outcome(
    of descriptor: Int32, _ deadline: ContinuousClock.Instant
  ) -> Int32 {
    while true {
      var waits = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      let ready = poll(&waits, 1, max(.zero, deadline - .now).milliseconds)
      if ready < 0, errno == EINTR { continue }
      guard ready > 0 else { return ready < 0 ? errno : ETIMEDOUT }
      var code: Int32 = 0
      var size = socklen_t(MemoryLayout<Int32>.size)
      return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno
    }
  }

  private static func open(_ address: UnsafePointer<addrinfo>) throws(Failure) -> Int32 {
    let descriptor = socket(address.pointee.ai_family, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Failure("no socket") }
    prepare(descriptor)
    return descriptor
  }

  private static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK)
    var on: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Calls `body` with one address of a host after the other, until it succeeds.
  private static func withAddresses(
    of host: String, port: UInt16, _ flags: Int32,
    _ body: (UnsafePointer<addrinfo>) throws(Failure) -> Int32
  ) throws(Failure) -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = flags
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, "\(port)", &hints, &found)
    guard code == 0 else {
      throw Failure(text: "\(host): \(String(cString: gai_strerror(code)))")
    }
    defer { freeaddrinfo(found) }
    var failure = Failure(text: "\(host) has no address")
    var next = found
    while let address = next {
      do throws(Failure) {
        return try body(address)
      } catch {
        failure = error
      }
      next = address.pointee.ai_next
    }
    throw failure
  }
}

extension LineSocket.Failure {
  fileprivate init(text: String) { description = text }
}
