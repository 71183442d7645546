import DendroPlatform

/// One connection of a load: bytes there, and answers of a known length back.
///
/// Unchecked: it never changes. One thread sends at a time, and one receives.
final class LoadConnection: @unchecked Sendable {
  let descriptor: Int32

  /// - Parameters:
  ///   - source: the address of this end; nil leaves it to the system.
  ///   - waits: whether calls wait, this one included.
  init(port: UInt16, from source: String? = nil, waits: Bool = true) throws {
    let type = Int32(SOCK_STREAM.rawValue) | (waits ? 0 : Int32(SOCK_NONBLOCK.rawValue))
    descriptor = DendroPlatform.socket(AF_INET, type, 0)
    Self.set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
    if let source {
      // One address has the same port for several connections, if they lead to different ones.
      Self.set(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT)
      _ = Self.with(source, port: 0) { bind(descriptor, $0, $1) }
    }
    let result = Self.with("127.0.0.1", port: port) { connect(descriptor, $0, $1) }
    guard descriptor >= 0, result == 0 || !waits && errno == EINPROGRESS else {
      throw ServeError(description: "a connection was refused")
    }
  }

  private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func with(
    _ host: String, port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, host, &address.sin_addr)
    return withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  /// - Parameter path: of a unix socket.
  init(path: String) throws {
    descriptor = DendroPlatform.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    try expect(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path), "a short path")
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard descriptor >= 0, result == 0 else {
      throw ServeError(description: "a connection was refused")
    }
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) throws {
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        DendroPlatform.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw ServeError(description: "a connection was lost") }
      offset += count
    }
  }

  /// Sends a request, and waits for its answer: all that comes in one piece.
  func call(_ request: [UInt8]) throws -> [UInt8] {
    try send(request)
    return try receive()
  }

  /// Sends a request over a WebSocket, and waits for its answer, before which no push may come.
  func callWire(_ request: [UInt8]) throws -> [UInt8] {
    try send(request)
    return try receive(upTo: "}}}")
  }

  func receive() throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { throw ServeError(description: "a connection was lost") }
    return Array(buffer[..<count])
  }

  /// Waits for so many bytes.
  func receive(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += try receive() }
    return bytes
  }

  /// Waits for bytes that end so.
  func receive(upTo end: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while !bytes.suffix(end.utf8.count).elementsEqual(end.utf8) { bytes += try receive() }
    return bytes
  }

  /// Makes it a WebSocket, and waits for the hello.
  func upgrade() throws {
    try send(HTTPRequest.upgrade)
    let answer = try receive(upTo: "}}}")
    guard answer.starts(with: Array("HTTP/1.1 101".utf8)) else {
      throw ServeError(description: "no WebSocket: \(String(decoding: answer, as: UTF8.self))")
    }
  }
}
