import DendroPlatform
import Foundation
import Testing

extension Tool {
  /// Starts a server with `--json`, and waits for the line that says where it is.
  func serve(_ arguments: [String]) throws -> (Running, port: UInt16) {
    let server = try start(["serve"] + arguments + ["--port", "0", "--json"])
    #expect(server.waitForOutput("\n"))
    let line = server.text(server.output)
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    return (server, UInt16(try #require(object?["port"] as? Int)))
  }

  /// The answer to a request, over a connection of its own.
  static func request(
    _ method: String, _ port: UInt16, _ target: String, _ body: String = "", header: String = ""
  ) throws -> (status: Int, body: String) {
    let socket = DendroPlatform.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    let result = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(result == 0)
    let text =
      "\(method) \(target) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(header)"
      + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    #expect(send(socket, text, text.utf8.count, 0) == text.utf8.count)
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = recv(socket, &buffer, buffer.count, 0), count > 0 {
      answer += buffer[..<count]
    }
    let parts = String(decoding: answer, as: UTF8.self).split(separator: "\r\n\r\n", maxSplits: 1)
    let status = parts.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return (status ?? 0, parts.count == 2 ? String(parts[1]) : "")
  }
}

extension Tool.Running {
  /// The lines of a server's log, as objects.
  var log: [[String: Any]] {
    text(errors).split(separator: "\n").compactMap { line in
      try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    }
  }
}
