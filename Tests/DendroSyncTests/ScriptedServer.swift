import DendroPlatform
import DendroProtocol
import Testing

/// A server that a test plays by hand: it says what the test wants, and shows what the client sends.
final class ScriptedServer {
  let port: Int
  private let listener: Int32
  private var connection: Int32 = -1
  private var received: [UInt8] = []
  /// What is sent together, so far.
  private var held: [UInt8]?

  struct Failure: Error {
    let text: String
    /// Whether the client has ended the connection.
    var isEnd = false
  }

  init() throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 8) == 0
          && getsockname(listener, address, &length) == 0
      }
    }
    guard isListening else { throw Failure(text: "the server cannot listen") }
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  deinit {
    cut()
    close(listener)
  }

  // MARK: Connections

  /// Takes the next connection, and greets the client.
  ///
  /// - Returns: the head of the client's request.
  @discardableResult
  func accept(greets: Bool = true, time: Int64 = 1_700_000_000_000) throws -> String {
    let head = try take()
    try changeOver(head)
    if greets {
      try send(
        #"{"t":"c","d":{"t":"h","d":{"ts":\#(time),"v":"5","h":"other.example","s":"session"}}}"#)
    }
    return head
  }

  /// Takes the next connection, and says nothing.
  ///
  /// - Returns: the head of the client's request.
  func take() throws -> String {
    cut()
    try wait(for: listener)
    connection = DendroPlatform.accept(listener, nil, nil)
    var on: Int32 = 1
    setsockopt(
      connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    return try nextHead()
  }

  /// The head of the client's next request.
  func nextHead() throws -> String {
    while !received.contains(sequence: Array("\r\n\r\n".utf8)) { try receivePart() }
    let head = String(decoding: received, as: UTF8.self)
    received = []
    return head
  }

  /// Agrees to speak by WebSocket.
  func changeOver(_ head: String) throws {
    let key =
      head.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?
      .dropFirst("Sec-WebSocket-Key: ".count) ?? ""
    let accept = Base64.encode(
      SHA1.digest(of: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    try write(
      Array(
        """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Accept: \(accept)\r
        \r

        """.utf8))
  }

  /// Cuts the line without a word.
  func cut() {
    if connection >= 0 { close(connection) }
    connection = -1
    received = []
  }

  // MARK: Messages

  /// Sends what `body` sends as one, so that the client has all of it even if it leaves at the first message.
  func together(_ body: () throws -> Void) throws {
    held = []
    try body()
    let bytes = held ?? []
    held = nil
    try write(bytes)
  }

  func send(_ text: String) throws {
    for frame in MessageFrames.split(Array(text.utf8)) { try send(0x1, frame) }
  }

  /// Sends a frame of any kind.
  func send(_ code: UInt8, _ content: [UInt8]) throws {
    var frame: [UInt8] = [0x80 | code]
    if content.count < 126 {
      frame.append(UInt8(content.count))
    } else if content.count < 1 << 16 {
      frame += [126, UInt8(content.count >> 8), UInt8(content.count & 0xFF)]
    } else {
      frame.append(127)
      for shift in stride(from: 56, through: 0, by: -8) {
        frame.append(UInt8(content.count >> shift & 0xFF))
      }
    }
    try write(frame + content)
  }

  /// The next message of the client; keep-alives and answers to pings are passed over.
  func next() throws -> JSONMembers {
    let text = try nextText()
    guard let members = JSONMembers(text[...]) else {
      throw Failure(text: "no message: \(String(decoding: text, as: UTF8.self))")
    }
    return members
  }

  /// The content of the next frame; keep-alives and answers to pings are passed over.
  func nextFrame() throws -> [UInt8] {
    while true {
      let (code, content) = try frame()
      if code == 0x1, content != Array("0".utf8) { return content }
    }
  }

  /// The text of the next message.
  func nextText() throws -> [UInt8] {
    let first = try nextFrame()
    guard let count = Int(String(decoding: first, as: UTF8.self)) else { return first }
    var text: [UInt8] = []
    for _ in 0..<count { text += try frame().content }
    return text
  }

  /// The next request of the client, but for the one that names its software.
  func request() throws -> (number: Int64, action: String, body: JSONMembers) {
    while true {
      let message = try next()
      guard let request = message.object("d"), let number = request.integer("r"),
        let action = request.string("a"), let body = request.object("b")
      else { throw Failure(text: "no request") }
      if action != "s" { return (number, action, body) }
      try answer(number)
    }
  }

  func answer(_ number: Int64, _ status: String = "ok", data: String = "\"\"") throws {
    try send(#"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status)","d":\#(data)}}}"#)
  }

  func push(_ action: String, _ body: String) throws {
    try send(#"{"t":"d","d":{"a":"\#(action)","b":\#(body)}}"#)
  }

  /// What the client has sent by the time when it has seen all that this server has sent, and has answered that.
  func settled() throws -> [JSONMembers] {
    var messages: [JSONMembers] = []
    // What it answers to a message may come behind its answer to the ping.
    for _ in 0..<2 {
      try send(0x9, Array("settled".utf8))
      while true {
        let (code, content) = try frame()
        if code == 0xA { break }
        if code == 0x1, let message = JSONMembers(content[...]) { messages.append(message) }
      }
    }
    return messages
  }

  /// Waits for a ping of the client.
  func awaitPing() throws {
    while try frame().code != 0x9 {}
  }

  /// Waits for a keep-alive of the client.
  func awaitKeepAlive() throws {
    while try frame() != (0x1, Array("0".utf8)) {}
  }

  /// The kinds of the frames that come until the client ends the connection, which this side leaves open.
  ///
  /// - Throws: if it does not within two minutes.
  @discardableResult
  func framesUntilEnd() throws -> [UInt8] {
    var kinds: [UInt8] = []
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
      guard .now < deadline else { throw Failure(text: "the client stays") }
      do {
        kinds.append(try anyFrame().code)
      } catch let failure as Failure where failure.isEnd {
        return kinds
      }
    }
  }

  // MARK: Bytes

  private func frame() throws -> (code: UInt8, content: [UInt8]) {
    let (code, content) = try anyFrame()
    if code == 0x8 { throw Failure(text: "the client has closed the connection") }
    return (code, content)
  }

  private func anyFrame() throws -> (code: UInt8, content: [UInt8]) {
    while received.count < 2 { try receivePart() }
    let code = received[0] & 0x0F
    var count = Int(received[1] & 0x7F)
    var start = 2
    if count >= 126 {
      let size = count == 126 ? 2 : 8
      while received.count < 2 + size { try receivePart() }
      count = received[2..<2 + size].reduce(0) { $0 << 8 | Int($1) }
      start += size
    }
    while received.count < start + 4 + count { try receivePart() }
    let mask = Array(received[start..<start + 4])
    start += 4
    let content = (0..<count).map { received[start + $0] ^ mask[$0 % 4] }
    received.removeFirst(start + count)
    return (code, content)
  }

  private func receivePart() throws {
    try wait(for: connection)
    var part = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(connection, &part, part.count, 0)
    guard count > 0 else { throw Failure(text: "the client has left", isEnd: true) }
    received += part[..<count]
  }

  /// - Throws: if nothing comes for a minute.
  private func wait(for socket: Int32) throws {
    var polled = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    while true {
      let result = poll(&polled, 1, 60_000)
      if result > 0 { return }
      if result == 0 { throw Failure(text: "the client is silent") }
      guard errno == EINTR else { throw Failure(text: "poll fails") }
    }
  }

  /// Sends bytes as they are.
  func write(_ bytes: [UInt8]) throws {
    if held != nil {
      held? += bytes
      return
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        DendroPlatform.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure(text: "the client has left", isEnd: true) }
      rest = rest.dropFirst(count)
    }
  }
}

extension [UInt8] {
  fileprivate func contains(sequence: [UInt8]) -> Bool {
    guard count >= sequence.count else { return false }
    return indices.dropLast(sequence.count - 1).contains {
      self[$0..<$0 + sequence.count].elementsEqual(sequence)
    }
  }
}
