import CDendroWSLay
import DendroPlatform
import DendroProtocol

/// A WebSocket to a server: whole messages on one side, the bytes of a stream on the other.
///
/// The loop's thread uses it alone.
final class WebSocketLine {
  private let stream: ByteStream
  private var context: wslay_event_context_ptr?
  private let limits: SyncLimits
  private var assembler: MessageAssembler
  /// What has come with the answer to the upgrade.
  private var early: [UInt8]
  /// Frames that are not sent yet.
  private var unsent: [UInt8] = []
  private var sentCount = 0
  private var readCount = 0
  private var failure: TransportError?
  private var messages: [[UInt8]] = []
  private var masks = RandomBytes()
  private var hasClosed = false
  /// Pings since all was sent. Their answers wait in libwslay, which does not bound them.
  private var pingCount = 0
  private static let pingCountMax = 64
  /// The frames of the message that is coming. libwslay needs memory for each, however short it is.
  private var fragmentCount = 0
  private static let fragmentCountMax = 1 << 16
  /// When the server gave its last sign of life.
  private var lastHeard = ContinuousClock.now
  /// When it was asked for one; nil if it has given one since.
  private var asked: ContinuousClock.Instant?
  /// Whether the server takes no more for now.
  private var isHeldUp = false

  /// So many bytes are read before what waits to be sent has its turn.
  private static let readByteLimit = 256 << 10
  private static let writeByteLimit = 64 << 10
  /// The most messages that the client handles as one step. It holds its lock during a step.
  private static let takenMessageMax = 128

  private init(
    _ stream: ByteStream, early: [UInt8], _ limits: SyncLimits
  ) throws(TransportError) {
    self.stream = stream
    self.limits = limits
    assembler = MessageAssembler(byteLimit: limits.messageByteLimit)
    self.early = early
    var callbacks = wslay_event_callbacks()
    callbacks.recv_callback = { context, buffer, count, _, line in
      guard let buffer, let line else { return -1 }
      return WebSocketLine.of(line).receive(context, buffer, count)
    }
    callbacks.send_callback = { context, bytes, count, _, line in
      guard let bytes, let line else { return -1 }
      return WebSocketLine.of(line).transmit(context, bytes, count)
    }
    callbacks.genmask_callback = { _, buffer, count, line in
      guard let buffer, let line else { return -1 }
      for index in 0..<count { buffer[index] = WebSocketLine.of(line).masks.next() }
      return 0
    }
    callbacks.on_frame_recv_start_callback = { _, frame, line in
      guard let frame = frame?.pointee, let line else { return }
      WebSocketLine.of(line).begin(frame)
    }
    callbacks.on_msg_recv_callback = { _, message, line in
      guard let message = message?.pointee, let line else { return }
      WebSocketLine.of(line).take(message)
    }
    // The line frees the context before it is freed itself.
    let own = Unmanaged.passUnretained(self).toOpaque()
    guard wslay_event_context_client_init(&context, &callbacks, own) == 0 else {
      throw .refused("there is no memory for a connection")
    }
    wslay_event_config_set_max_recv_msg_length(context, UInt64(limits.messageByteLimit))
  }

  deinit { if let context { wslay_event_context_free(context) } }

  private static func of(_ pointer: UnsafeMutableRawPointer) -> WebSocketLine {
    Unmanaged<WebSocketLine>.fromOpaque(pointer).takeUnretainedValue()
  }

  var descriptor: Int32 { stream.descriptor }

  var wantsToWrite: Bool {
    sentCount < unsent.count || stream.readWantsToWrite || wslay_event_want_write(context) != 0
  }

  // MARK: Opening

  /// Makes a connection, and has the server change over to a WebSocket.
  ///
  /// - Parameters:
  ///   - proxy: nil if none is needed.
  ///   - lastSession: of the connection before.
  static func open(
    _ destination: Destination, through proxy: Proxy?, trusting trust: TrustedCertificates?,
    lastSession: String?, _ limits: SyncLimits, _ waiter: Waiter,
    until deadline: ContinuousClock.Instant, isOver: @escaping () -> Bool
  ) throws(TransportError) -> WebSocketLine {
    let connector = Connector(waiter: waiter, deadline: deadline, isOver: isOver)
    let (host, port) = (destination.host, destination.port)
    let stream: ByteStream
    if let proxy {
      stream = ByteStream(try connector.connect(to: proxy.host, proxy.port))
      try proxy.reach(host, port, over: stream, waiter, until: deadline, isOver)
    } else {
      stream = ByteStream(try connector.connect(to: host, port))
    }
    if destination.isSecure {
      try stream.encrypt(
        as: Connector.withoutBrackets(host), trusting: trust, waiter, until: deadline,
        isOver: isOver)
    }
    let key = Base64.encode((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    try stream.writeAll(
      request(destination, lastSession, key), waiter, until: deadline, isOver: isOver)
    let (head, rest) = try stream.readHead(waiter, until: deadline, isOver: isOver)
    try check(head, key)
    return try WebSocketLine(stream, early: rest, limits)
  }

  private static func request(
    _ destination: Destination, _ lastSession: String?, _ key: String
  ) -> String {
    var target = "/.ws?v=5"
    if let lastSession { target += "&ls=\(escaped(lastSession))" }
    if let namespace = destination.namespace { target += "&ns=\(escaped(namespace))" }
    let isUsual = destination.port == (destination.isSecure ? 443 : 80)
    let host = destination.host + (isUsual ? "" : ":\(destination.port)")
    return """
      GET \(target) HTTP/1.1\r
      Host: \(host)\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Key: \(key)\r
      Sec-WebSocket-Version: 13\r
      User-Agent: Firebase/5/dendro/0.1.0/Linux\r
      \r

      """
  }

  private static func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
  }

  private static func check(_ head: String, _ key: String) throws(TransportError) {
    let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
    let words = (lines.first ?? "").split(separator: " ", maxSplits: 2)
    guard words.count > 1, words[0].hasPrefix("HTTP/1.") else {
      throw .refused("the server does not speak HTTP")
    }
    guard words[1] == "101" else {
      throw .refused(
        "the server refuses the connection: \(words.dropFirst().joined(separator: " "))")
    }
    let accept = Base64.encode(
      SHA1.digest(of: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    let isAccepted = lines.dropFirst().contains { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return parts.count == 2 && parts[0].lowercased() == "sec-websocket-accept"
        && parts[1].drop { $0 == " " } == accept
    }
    if !isAccepted { throw .refused("the server does not change over to a WebSocket") }
  }

  // MARK: Sending

  /// Sends messages after those before them, as far as the server takes them now.
  func send(_ messages: [[UInt8]]) throws(TransportError) {
    for message in messages {
      for frame in MessageFrames.split(message) {
        let result = frame.withUnsafeBufferPointer { frame in
          var text = wslay_event_msg(
            opcode: UInt8(WSLAY_TEXT_FRAME.rawValue), msg: frame.baseAddress,
            msg_length: frame.count)
          return wslay_event_queue_msg(context, &text)
        }
        if result != 0 { throw .ended }
      }
    }
    try flush()
  }

  private func flush() throws(TransportError) {
    while true {
      if sentCount == unsent.count {
        unsent.removeAll(keepingCapacity: unsent.count <= 2 * Self.writeByteLimit)
        sentCount = 0
        guard wslay_event_want_write(context) != 0 else { return }
        guard wslay_event_send(context) == 0 else { throw failure ?? .ended }
        if unsent.isEmpty { return }
      }
      switch unsent[sentCount...].withUnsafeBytes({
        stream.write($0.baseAddress.unsafelyUnwrapped, $0.count)
      }) {
      case .bytes(let count):
        sentCount += count
        if isHeldUp { noteLife() }
        isHeldUp = false
      case .waiting:
        isHeldUp = true
        return
      case .ended: throw .ended
      case .failed(let error): throw error
      }
    }
  }

  private func transmit(
    _ context: wslay_event_context_ptr?, _ bytes: UnsafePointer<UInt8>, _ count: Int
  ) -> Int {
    if unsent.count >= Self.writeByteLimit {
      wslay_event_set_error(context, Int32(WSLAY_ERR_WOULDBLOCK.rawValue))
      return -1
    }
    unsent.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
    return count
  }

  // MARK: Silence

  private func noteLife() {
    lastHeard = .now
    asked = nil
  }

  /// Pings a server that has been silent for long: every server answers that. One that stays silent is lost, also if its
  /// system still says that all has arrived.
  ///
  /// - Returns: when to look again.
  func checkSilence() throws(TransportError) -> ContinuousClock.Instant {
    let now = ContinuousClock.now
    if let asked {
      let end = asked + limits.answerTimeout
      if now >= end { throw .silent }
      return end
    }
    let end = lastHeard + limits.keepAliveInterval
    if now < end { return end }
    var ping = wslay_event_msg(opcode: UInt8(WSLAY_PING.rawValue), msg: nil, msg_length: 0)
    guard wslay_event_queue_msg(context, &ping) == 0 else { throw .ended }
    try flush()
    asked = now
    return now + limits.answerTimeout
  }

  /// Says good-bye, if that can be said at once.
  func close() {
    if hasClosed { return }
    hasClosed = true
    wslay_event_queue_close(context, 1000, nil, 0)
    try? flush()
    stream.finish()
  }

  // MARK: Receiving

  /// Passes on the messages that have come.
  ///
  /// - Parameter take: gets some of them; returns false if no more are wanted.
  /// - Returns: whether there is more to be read.
  func receive(_ take: (ArraySlice<[UInt8]>) -> Bool) throws(TransportError) -> Bool {
    readCount = 0
    let result = wslay_event_recv(context)
    var isWanted = true
    var rest = messages[...]
    while isWanted, !rest.isEmpty {
      isWanted = take(rest.prefix(Self.takenMessageMax))
      rest = rest.dropFirst(Self.takenMessageMax)
    }
    messages = []
    if let failure { throw failure }
    if wslay_event_get_close_received(context) != 0 { throw .ended }
    // libwslay reads no more of a server that breaks the protocol, and only wants to say so.
    let isBroken = wslay_event_get_read_enabled(context) == 0
    guard result == 0 || isBroken else { throw .ended }
    try flush()
    if isBroken {
      throw .refused("the server breaks the protocol of WebSockets")
    }
    if unsent.isEmpty { pingCount = 0 }
    if pingCount > Self.pingCountMax { throw .refused("the server reads no answers to its pings") }
    return readCount >= Self.readByteLimit
  }

  private func receive(
    _ context: wslay_event_context_ptr?, _ buffer: UnsafeMutablePointer<UInt8>, _ count: Int
  ) -> Int {
    if !early.isEmpty {
      let part = min(count, early.count)
      early.withUnsafeBytes {
        UnsafeMutableRawPointer(buffer).copyMemory(
          from: $0.baseAddress.unsafelyUnwrapped, byteCount: part)
      }
      early.removeFirst(part)
      return part
    }
    if readCount < Self.readByteLimit {
      switch stream.read(buffer, count) {
      case .bytes(let count):
        readCount += count
        noteLife()
        return count
      case .waiting: break
      case .ended: return fail(context, .ended)
      case .failed(let error): return fail(context, error)
      }
    }
    wslay_event_set_error(context, Int32(WSLAY_ERR_WOULDBLOCK.rawValue))
    return -1
  }

  private func fail(_ context: wslay_event_context_ptr?, _ error: TransportError) -> Int {
    failure = error
    wslay_event_set_error(context, Int32(WSLAY_ERR_CALLBACK_FAILURE.rawValue))
    return -1
  }

  private func begin(_ frame: wslay_event_on_frame_recv_start_arg) {
    // Frames of control come between those of a message.
    if frame.opcode >= UInt8(WSLAY_CONNECTION_CLOSE.rawValue) { return }
    if frame.opcode != UInt8(WSLAY_CONTINUATION_FRAME.rawValue) { fragmentCount = 0 }
    fragmentCount += 1
    if fragmentCount > Self.fragmentCountMax {
      failure = .refused("the server sends a message in too many frames")
    }
  }

  private func take(_ message: wslay_event_on_msg_recv_arg) {
    guard message.opcode == UInt8(WSLAY_TEXT_FRAME.rawValue) else {
      // libwslay answers control frames by itself.
      if message.opcode == UInt8(WSLAY_PING.rawValue) { pingCount += 1 }
      if message.opcode == UInt8(WSLAY_BINARY_FRAME.rawValue) {
        failure = .refused("the server sends what is no text")
      }
      return
    }
    switch assembler.add(Array(UnsafeBufferPointer(start: message.msg, count: message.msg_length)))
    {
    case .waiting: break
    case .message(let text): messages.append(text)
    case .tooLarge: failure = .refused("the server sends a message that is too large")
    }
  }
}
