import CDendroCrypto
import DendroPlatform
import DendroTree
import Synchronization

/// A connection between two servers of a cluster, over which both send messages. Nothing is believed before the other end has
/// proved that it has the key.
///
/// Unchecked: all that has no lock is used on the loop's thread only.
final class Line: LineLoop.Member, @unchecked Sendable {
  /// What becomes of messages. Called on the loop's thread, and may not wait.
  protocol Handler: AnyObject, Sendable {
    /// - Returns: false for what no server sends: the line ends.
    func take(_ message: LineMessage, from line: Line) -> Bool
    /// Called once, after the last message.
    func lineEnded(_ line: Line)
  }

  let descriptor: Int32
  private let loop: LineLoop
  private let tls: OpaquePointer
  private let key: UnsafeMutablePointer<UInt8>
  private var handler: (any Handler)?
  private let outbox = Mutex(Outbox())
  /// What is being sent, and how much of it was.
  private var outgoing: [UInt8] = []
  private var sentByteCount = 0
  private var incoming: [UInt8] = []
  private var takenByteCount = 0
  private var hasProvedKey = false
  /// Whether the other end has said who it is, or this one has called it.
  private var isKnown: Bool
  private let accepts: Bool
  private var wantsToWrite = false
  private var lastHeard = ContinuousClock.now
  private var lastPing = ContinuousClock.now

  private struct Outbox {
    var frames = Queue<[UInt8]>()
    var byteCount = 0
    var isClosed = false
  }

  /// What waits to be sent, at most: an end that takes nothing is left.
  private static let waitingByteCountMax = 64 << 20
  /// Of an end that has not said who it is.
  private static let firstByteCountMax = 4 << 10
  /// As much as TLS has in one record.
  private static let partByteCount = 16 << 10
  /// After which a silent line ends.
  private static let patience = Duration.seconds(4)
  /// How often the end that has called asks whether the other one is there.
  private static let pingInterval = Duration.seconds(1)

  /// - Parameters:
  ///   - descriptor: of a socket that does not block; the line's from now on.
  ///   - key: of the end that accepts.
  ///   - accepts: whether this is that end.
  /// - Returns: nil if there is no memory.
  init?(
    _ descriptor: Int32, key: [UInt8], accepts: Bool, _ loop: LineLoop, _ handler: any Handler
  ) {
    precondition(key.count == Int(dendro_tls_key_size), "a key has a fixed length")
    self.descriptor = descriptor
    self.loop = loop
    self.handler = handler
    self.accepts = accepts
    isKnown = !accepts
    self.key = UnsafeMutablePointer<UInt8>.allocate(capacity: key.count)
    self.key.initialize(from: key, count: key.count)
    guard let context = LineContext.shared,
      let tls = dendro_tls_with_key(
        context.keyed, context.transport, descriptor, self.key, accepts ? 1 : 0)
    else {
      self.key.deallocate()
      DendroPlatform.close(descriptor)
      return nil
    }
    self.tls = tls
  }

  deinit { key.deallocate() }

  // MARK: Any thread

  /// Sends a message behind those before it. If too much waits, the line ends.
  ///
  /// - Returns: false if the line has ended, or ends.
  @discardableResult
  func send(_ message: LineMessage) -> Bool { send(frame: message.frame) }

  /// Sends a message, as `LineMessage.frame` makes it.
  @discardableResult
  func send(frame: [UInt8]) -> Bool {
    let isTaken = outbox.withLock { outbox in
      if outbox.isClosed { return false }
      outbox.byteCount += frame.count
      if outbox.byteCount > Self.waitingByteCountMax {
        outbox.isClosed = true
      } else {
        outbox.frames.append(frame)
      }
      return !outbox.isClosed
    }
    loop.signal()
    return isTaken
  }

  /// Whether nothing is sent any more.
  var hasEnded: Bool { outbox.withLock { $0.isClosed } }

  /// Ends the line. What waits is not sent.
  func close() {
    outbox.withLock { $0.isClosed = true }
    loop.signal()
  }

  // MARK: The loop's thread

  /// Has another handler take the messages from now on, since the other end has said who it is.
  func hand(to handler: any Handler) {
    self.handler = handler
    isKnown = true
  }

  func serve(isReady: Bool) -> Int16? {
    if hasEnded { return nil }
    if isReady {
      guard read() else { return nil }
    }
    let now = ContinuousClock.now
    if !accepts, now - lastPing >= Self.pingInterval {
      lastPing = now
      send(.ping)
    }
    guard write(), now - lastHeard < Self.patience else { return nil }
    return Int16(POLLIN) | (wantsToWrite ? Int16(POLLOUT) : 0)
  }

  func end() {
    outbox.withLock { outbox in
      outbox.isClosed = true
      outbox.frames = Queue()
    }
    dendro_tls_close(tls)
    SSL_free(tls)
    DendroPlatform.close(descriptor)
    handler?.lineEnded(self)
    handler = nil
  }

  /// - Returns: false at the end.
  private func read() -> Bool {
    // Others are served between.
    for _ in 0..<64 {
      let start = incoming.count
      incoming.append(contentsOf: repeatElement(0, count: Self.partByteCount))
      let count = incoming.withUnsafeMutableBytes {
        Int(
          dendro_tls_read(tls, $0.baseAddress.unsafelyUnwrapped + start, Int32(Self.partByteCount)))
      }
      incoming.removeLast(Self.partByteCount - max(0, count))
      guard count > 0 else {
        return count == dendro_tls_wants_read || count == dendro_tls_wants_write
      }
      guard proves() else { return false }
      lastHeard = .now
      guard takeMessages() else { return false }
    }
    loop.signal()
    return true
  }

  private func proves() -> Bool {
    if !hasProvedKey { hasProvedKey = dendro_tls_has_proved_key(tls) != 0 }
    return hasProvedKey
  }

  /// - Returns: false if there is what no server sends.
  private func takeMessages() -> Bool {
    while incoming.count - takenByteCount >= LineMessage.lengthByteCount {
      let length = incoming.withUnsafeBytes {
        Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: takenByteCount, as: UInt32.self)))
      }
      guard length <= (isKnown ? LineMessage.byteCountMax : Self.firstByteCountMax) else {
        return false
      }
      let start = takenByteCount + LineMessage.lengthByteCount
      guard incoming.count >= start + length else { break }
      guard let message = LineMessage(incoming[start..<(start + length)]) else { return false }
      takenByteCount = start + length
      switch message {
      case .ping: send(.pong)
      case .pong: break
      default:
        guard let handler, handler.take(message, from: self) else { return false }
      }
    }
    if takenByteCount == incoming.count {
      incoming.removeAll(keepingCapacity: incoming.capacity <= 4 * Self.partByteCount)
      takenByteCount = 0
    } else if takenByteCount > 0 {
      incoming.removeFirst(takenByteCount)
      takenByteCount = 0
    }
    return true
  }

  /// - Returns: false at the end.
  private func write() -> Bool {
    wantsToWrite = false
    while true {
      if sentByteCount == outgoing.count {
        let next = outbox.withLock { outbox in
          let next = outbox.frames.popFirst()
          outbox.byteCount -= next?.count ?? 0
          return next
        }
        guard let next else {
          // The handshake goes on without a message.
          return hasProvedKey || handshakes()
        }
        outgoing = next
        sentByteCount = 0
      }
      let count = outgoing.withUnsafeBytes { bytes in
        let rest = UnsafeRawBufferPointer(rebasing: bytes[sentByteCount...])
        return Int(dendro_tls_write(tls, rest.baseAddress, Int32(min(rest.count, 1 << 20))))
      }
      if count > 0 {
        guard proves() else { return false }
        sentByteCount += count
      } else {
        wantsToWrite = count == dendro_tls_wants_write
        return wantsToWrite || count == dendro_tls_wants_read
      }
    }
  }

  private func handshakes() -> Bool {
    let result = Int(dendro_tls_handshake(tls))
    if result > 0 { return proves() }
    wantsToWrite = result == dendro_tls_wants_write
    return wantsToWrite || result == dendro_tls_wants_read
  }
}

/// What OpenSSL needs for all lines.
///
/// Unchecked: OpenSSL lets all threads use both.
private struct LineContext: @unchecked Sendable {
  let keyed: OpaquePointer
  let transport: OpaquePointer

  /// Nil if there is no memory.
  static let shared: LineContext? = {
    guard let keyed = dendro_tls_keyed(), let transport = dendro_tls_transport() else { return nil }
    return LineContext(keyed: keyed, transport: transport)
  }()
}
