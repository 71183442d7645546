import DendroPlatform
import DendroServer
import DendroTestSupport
import Testing

/// A client that shows every message, over one WebSocket.
///
/// Calls block; one thread at a time.
final class WebSocketClient: WireClient {
  private let http: HTTPClient
  /// The hello.
  private(set) var hello = ""
  var number = 0

  convenience init(
    _ served: Served, _ target: String = "/.ws?v=5&ns=app", receiveBuffer: Int32? = nil
  ) throws {
    try self.init(port: served.server.port, target, receiveBuffer: receiveBuffer)
  }

  convenience init(
    port: UInt16, _ target: String = "/.ws?v=5&ns=app", receiveBuffer: Int32? = nil
  ) throws {
    try self.init(try HTTPClient(port: port, receiveBuffer: receiveBuffer), target)
  }

  /// Makes a connection a WebSocket.
  init(_ http: HTTPClient, _ target: String = "/.ws?v=5&ns=app") throws {
    self.http = http
    try http.send(
      "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    let head = try http.head()
    // A server that is about to stop answers with 503.
    guard head.status == 101 else {
      throw HTTPClient.Ended("\(head.status) in place of a WebSocket")
    }
    #expect(head.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    hello = try message()
  }

  /// - Parameter http: its connection is a WebSocket already. There is no hello.
  init(upgraded http: HTTPClient) { self.http = http }

  // MARK: Sending

  func send(_ text: String) throws { try frame(0x1, Array(text.utf8)) }

  func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) throws {
    try http.send(bytes: Self.frame(opcode, payload, isFinal: isFinal))
  }

  /// The bytes of a frame.
  static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
    var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
    switch payload.count {
    case ..<126: bytes.append(0x80 | UInt8(payload.count))
    case ..<65_536:
      bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default:
      bytes.append(0x80 | 127)
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
    }
    let mask: [UInt8] = [1, 2, 3, 4]
    bytes += mask
    return bytes + masked(payload, with: mask)
  }

  func send(bytes: [UInt8]) throws { try http.send(bytes: bytes) }

  /// Sends a frame over and over; see `HTTPClient.flood(_:limit:)`.
  func flood(_ frame: [UInt8], limit: Int) throws -> Int { try http.flood(frame, limit: limit) }

  // MARK: Receiving

  /// Whether something can be read without waiting.
  var hasInput: Bool { http.hasInput }

  /// The next message, put together.
  func message() throws -> String {
    let first = try nextFrame()
    guard first.utf8.count <= 6, let count = Int(first) else { return first }
    return try (0..<count).map { _ in try nextFrame() }.joined()
  }

  private func nextFrame() throws -> String {
    while true {
      let (opcode, payload) = try rawFrame()
      if opcode == 0x1 { return String(decoding: payload, as: UTF8.self) }
      if opcode == 0x8 {
        let code = payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        throw HTTPClient.Ended("a closing frame with code \(code)")
      }
    }
  }

  func rawFrame() throws -> (opcode: UInt8, payload: [UInt8]) {
    let head = try http.take(2)
    var count = Int(head[1] & 0x7F)
    if count == 126 {
      count = try http.take(2).reduce(0) { $0 << 8 | Int($1) }
    } else if count == 127 {
      count = try http.take(8).reduce(0) { $0 << 8 | Int($1) }
    }
    return (head[0] & 0xF, try http.take(count))
  }

  /// The code with which the server closes the connection.
  func closingCode() throws -> Int {
    while true {
      let (opcode, payload) = try rawFrame()
      if opcode == 0x8 { return payload.prefix(2).reduce(0) { $0 << 8 | Int($1) } }
    }
  }
}
