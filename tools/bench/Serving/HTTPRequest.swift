/// Requests as bytes.
enum HTTPRequest {
  static func get(_ path: String) -> [UInt8] {
    Array("GET /\(path).json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
  }

  /// A PUT whose answer has no body.
  static func put(_ path: String, _ json: String) -> [UInt8] {
    let head =
      "PUT /\(path).json?print=silent HTTP/1.1\r\nHost: 127.0.0.1\r\n"
      + "Content-Length: \(json.utf8.count)\r\n\r\n"
    return Array((head + json).utf8)
  }

  static let upgrade = Array(
    ("GET /.ws?v=5&ns=default HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
      + "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").utf8)
}

/// Requests of WebSockets as bytes: one masked frame each.
enum WireRequestBytes {
  /// Numbers have seven digits, so that all answers have one length.
  static func request(_ number: Int, _ action: String, _ body: String) -> [UInt8] {
    frame("{\"t\":\"d\",\"d\":{\"r\":\(1_000_000 + number),\"a\":\"\(action)\",\"b\":\(body)}}")
  }

  private static func frame(_ text: String) -> [UInt8] { frame(0x81, Array(text.utf8)) }

  /// - Parameter first: the first byte: the opcode, and 0x80 if the frame is the last of its message.
  static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [first]
    if payload.count < 126 {
      bytes.append(0x80 | UInt8(payload.count))
    } else if payload.count < 1 << 16 {
      bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    } else {
      bytes.append(0x80 | 127)
      bytes += withUnsafeBytes(of: UInt64(payload.count).bigEndian, Array.init)
    }
    // A mask of zeros leaves the payload as it is.
    return bytes + [0, 0, 0, 0] + payload
  }
}

/// Commands of Redis as bytes.
enum RedisRequest {
  static func command(_ words: String...) -> [UInt8] {
    var bytes = Array("*\(words.count)\r\n".utf8)
    for word in words { bytes += Array("$\(word.utf8.count)\r\n\(word)\r\n".utf8) }
    return bytes
  }
}
