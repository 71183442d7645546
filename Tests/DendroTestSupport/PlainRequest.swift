import DendroPlatform

/// One request to a server of this machine, over a connection of its own.
package enum PlainRequest {
  package struct Failed: Error {}

  /// Sends a request, and waits for the whole answer.
  ///
  /// - Parameter header: whole lines.
  package static func send(
    _ method: String, _ port: UInt16, _ target: String, _ body: String = "", header: String = ""
  ) throws(Failed) -> (status: Int, body: String) {
    let socket = try connected(to: port)
    defer { close(socket) }
    try send(
      "\(method) \(target) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(header)"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)", to: socket)
    var answer: [UInt8] = []
    while let part = receive(from: socket) { answer += part }
    let parts = String(decoding: answer, as: UTF8.self).split(separator: "\r\n\r\n", maxSplits: 1)
    let status = parts.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return (status ?? 0, parts.count == 2 ? String(parts[1]) : "")
  }

  /// Opens a stream of events, and returns once a text has come in it.
  ///
  /// - Parameter begun: called once the stream is open.
  package static func stream(
    _ port: UInt16, _ target: String, until text: String, begun: () -> Void
  ) throws(Failed) {
    let socket = try connected(to: port)
    defer { close(socket) }
    try send(
      "GET \(target) HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", to: socket)
    var answer = ""
    while let part = receive(from: socket) {
      if answer.isEmpty { begun() }
      answer += String(decoding: part, as: UTF8.self)
      if answer.contains(text) { return }
    }
    throw Failed()
  }

  /// Opens a connection that stays open.
  ///
  /// - Parameter text: is sent.
  package static func open(_ port: UInt16, sending text: String) throws(Failed) -> CInt {
    let socket = try connected(to: port)
    do throws(Failed) {
      try send(text, to: socket)
    } catch {
      // The server has closed it: that is read from it.
    }
    return socket
  }

  /// What comes next over a connection; empty at its end.
  package static func read(from socket: CInt) -> String {
    String(decoding: receive(from: socket) ?? [], as: UTF8.self)
  }

  private static func connected(to port: UInt16) throws(Failed) -> CInt {
    let socket = DendroPlatform.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    let result = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      close(socket)
      throw Failed()
    }
    return socket
  }

  private static func send(_ text: String, to socket: CInt) throws(Failed) {
    guard
      DendroPlatform.send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL))
        == text.utf8.count
    else {
      throw Failed()
    }
  }

  /// - Returns: nil at the end.
  private static func receive(from socket: CInt) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(socket, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer[..<count]) : nil
  }
}
