import DendroPlatform
import DendroTestSupport
import Testing

/// A client that shows every byte: one connection, and requests that may be no requests.
///
/// Calls block; one thread at a time.
final class HTTPClient {
  struct Answer {
    var status: Int
    /// Names in lower case.
    var headers: [String: String]
    var body: String
  }

  /// There is nothing more to read or to write.
  struct Ended: Error, CustomStringConvertible {
    let description: String

    init(_ why: String) { description = "the connection has ended: \(why)" }

    /// After a call that has failed.
    static func system(_ call: String) -> Ended {
      Ended("\(call): \(String(cString: strerror(errno)))")
    }
  }

  /// In seconds. If an answer does not come, the test fails instead of waiting; but a sanitizer makes every answer slow,
  /// and so do other tests that run at the same time.
  private static let patience: Int32 = 600

  private let socket: Int32
  private var received: [UInt8] = []

  /// - Parameters:
  ///   - host: the server's address.
  ///   - own: the client's, one of this machine; nil for the one that the system chooses.
  ///   - receiveBuffer: in bytes; nil for that of the system.
  convenience init(
    port: UInt16, at host: String = "127.0.0.1", from own: String? = nil,
    receiveBuffer: Int32? = nil
  ) throws {
    self.init(
      socket: try Self.connected(to: port, at: host, from: own, receiveBuffer: receiveBuffer))
  }

  /// - Parameter socket: connected; taken over.
  init(socket: Int32) {
    self.socket = socket
    var timeout = timeval(tv_sec: Int(Self.patience), tv_usec: 0)
    setsockopt(
      socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
  }

  /// A socket that is connected to a server.
  static func connected(
    to port: UInt16, at host: String = "127.0.0.1", from own: String? = nil,
    receiveBuffer: Int32? = nil
  ) throws -> Int32 {
    let family = host.contains(":") ? AF_INET6 : AF_INET
    let socket = DendroPlatform.socket(family, Int32(SOCK_STREAM.rawValue), 0)
    if var size = receiveBuffer {
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    func call(
      _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ host: String, _ port: UInt16
    ) -> Bool {
      if family == AF_INET6 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(family)
        address.sin6_port = port.bigEndian
        inet_pton(family, host, &address.sin6_addr)
        return withUnsafeBytes(of: address) { bytes in
          bytes.withMemoryRebound(to: sockaddr.self) {
            body(socket, $0.baseAddress.unsafelyUnwrapped, socklen_t(bytes.count)) == 0
          }
        }
      }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(family)
      address.sin_port = port.bigEndian
      inet_pton(family, host, &address.sin_addr)
      return withUnsafeBytes(of: address) { bytes in
        bytes.withMemoryRebound(to: sockaddr.self) {
          body(socket, $0.baseAddress.unsafelyUnwrapped, socklen_t(bytes.count)) == 0
        }
      }
    }
    guard own.map({ call(bind, $0, 0) }) ?? true, call(connect, host, port) else {
      let error = Ended.system("connect")
      close(socket)
      throw error
    }
    return socket
  }

  /// Whether the machine has an address of IPv6.
  static func hasAddress(_ host: String) -> Bool {
    let socket = DendroPlatform.socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    inet_pton(AF_INET6, host, &address.sin6_addr)
    return withUnsafeBytes(of: address) { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) {
        bind(socket, $0.baseAddress.unsafelyUnwrapped, socklen_t(bytes.count)) == 0
      }
    }
  }

  deinit { close(socket) }

  // MARK: Requests

  func callAsFunction(
    _ method: String, _ target: String, _ body: String? = nil, _ headers: [String: String] = [:]
  ) throws -> Answer {
    try send(Self.request(method, target, body, headers))
    return try answer(hasBody: method != "HEAD")
  }

  static func request(
    _ method: String, _ target: String, _ body: String? = nil, _ headers: [String: String] = [:]
  ) -> String {
    var text = "\(method) \(target) HTTP/1.1\r\n"
    if headers["Host"] == nil { text += "Host: 127.0.0.1\r\n" }
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { text += "\(name): \(value)\r\n" }
    if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
    return text + "\r\n" + (body ?? "")
  }

  func send(_ text: String) throws { try send(bytes: Array(text.utf8)) }

  func send(bytes: [UInt8]) throws {
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        DendroPlatform.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Ended.system("send") }
      offset += count
    }
  }

  /// Sends bytes over and over until the server has taken none for a while, or `limit` of them.
  ///
  /// - Returns: how many of them were sent.
  func flood(_ bytes: [UInt8], limit: Int) throws -> Int {
    var sentCount = 0
    while sentCount < limit {
      let count = bytes[(sentCount % bytes.count)...].withUnsafeBytes {
        DendroPlatform.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count > 0 {
        sentCount += count
        continue
      }
      guard errno == EAGAIN else { throw Ended.system("send") }
      var room = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      if poll(&room, 1, 200) == 0 { return sentCount }
    }
    return sentCount
  }

  /// Sends nothing until the end, and all of it together with the end; less than a packet holds.
  func holdBack() {
    var on: Int32 = 1
    setsockopt(
      socket, Int32(IPPROTO_TCP), TCP_CORK, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Sends no more; the server sees the end of its input.
  func shutDownWriting() { shutdown(socket, Int32(SHUT_WR)) }

  // MARK: Answers

  func answer(hasBody: Bool = true) throws -> Answer {
    let head = try head()
    var body = ""
    if !hasBody || head.status == 304 || head.status == 204 {
    } else if head.headers["transfer-encoding"] == "chunked" {
      var bytes: [UInt8] = []
      while let part = try chunk() { bytes += part }
      body = String(decoding: bytes, as: UTF8.self)
    } else if let count = head.headers["content-length"].flatMap({ Int($0) }) {
      body = String(decoding: try take(count), as: UTF8.self)
    }
    return Answer(status: head.status, headers: head.headers, body: body)
  }

  /// The head of an answer, for streams.
  func head() throws -> Answer {
    var lines: [String] = []
    while true {
      let line = try line()
      if line.isEmpty { break }
      lines.append(line)
    }
    let first = try #require(lines.first).split(separator: " ")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      let (name, value) = (
        parts[0].lowercased(), parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
      )
      headers[name] = headers[name].map { "\($0), \(value)" } ?? value
    }
    return Answer(status: try #require(Int(first[1])), headers: headers, body: "")
  }

  private var streamed: [UInt8] = []
  /// Bytes of it in which no event ends.
  private var searchedCount = 0

  /// The next event of a stream, as `put {"path":…}`.
  func event() throws -> String {
    while true {
      if let end = firstIndex(of: "\n\n", in: streamed, from: searchedCount) {
        let text = String(decoding: streamed[..<end], as: UTF8.self)
        streamed.removeSubrange(..<(end + 2))
        searchedCount = 0
        return text.replacing("event: ", with: "").replacing("\ndata: ", with: " ")
      }
      searchedCount = max(0, streamed.count - 1)
      guard let part = try chunk() else { throw Ended("the last chunk") }
      streamed += part
    }
  }

  /// The next part of a chunked body; nil at its end.
  private func chunk() throws -> [UInt8]? {
    let count = try #require(Int(try line(), radix: 16))
    let part = try take(count)
    _ = try line()
    return count == 0 ? nil : part
  }

  private func line() throws -> String {
    while true {
      if let end = firstIndex(of: "\r\n", in: received) {
        let line = String(decoding: received[..<end], as: UTF8.self)
        received.removeSubrange(..<(end + 2))
        return line
      }
      try receive()
    }
  }

  func take(_ count: Int) throws -> [UInt8] {
    while received.count < count { try receive() }
    defer { received.removeFirst(count) }
    return Array(received.prefix(count))
  }

  private func receive() throws {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    var count: Int
    // A process that was stopped and goes on, as under a debugger, is interrupted where a socket has a deadline.
    repeat {
      count = buffer.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
    } while count < 0 && errno == EINTR
    guard count != 0 else { throw Ended("the server has closed it") }
    guard count > 0 else { throw Ended.system("recv") }
    received += buffer[..<count]
  }

  /// Waits until one of two has something to be read.
  ///
  /// - Returns: which one.
  static func ready(_ a: HTTPClient, _ b: HTTPClient) throws -> HTTPClient {
    if !a.received.isEmpty { return a }
    if !b.received.isEmpty { return b }
    var sockets = [a, b].map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
    guard poll(&sockets, 2, patience * 1000) > 0 else { throw Ended("nothing came") }
    return sockets[0].revents != 0 ? a : b
  }

  /// Whether something can be read without waiting.
  var hasInput: Bool {
    var input = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    return !received.isEmpty || poll(&input, 1, 0) > 0
  }

  /// Reads until the server closes the connection.
  func readToEnd() -> String {
    while (try? receive()) != nil {}
    return String(decoding: received, as: UTF8.self)
  }
}
