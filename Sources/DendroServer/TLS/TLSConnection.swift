import CDendroCrypto
import DendroPlatform
import Synchronization

/// One client that speaks TLS, and the socket on which the server hears and says the same without it.
///
/// Unchecked: all that has no lock is used on the loop's thread only.
final class TLSConnection: @unchecked Sendable {
  private let loop: SocketLoop
  private let tls: OpaquePointer
  private let memory: Memory
  /// Called once, when both sockets are closed.
  private let ended: @Sendable (TLSConnection) -> Void
  private var client: Side?
  private var server: Side?
  /// What the server has not taken yet, and the client neither.
  private var inbound = Unsent()
  private var outbound = Unsent()
  /// Nothing more comes from there.
  private var hasClientEnded = false
  private var hasServerEnded = false
  /// The client was told that nothing follows.
  private var hasSaidGoodbye = false
  private var readWantsWrite = false
  private var writeWantsRead = false
  private var isOver = false
  /// After which the connection is closed as it is.
  private let deadline = Mutex<ContinuousClock.Instant?>(nil)

  /// How long a client has to read the rest, and how long it may go on sending after that.
  private static let patience = (flush: Duration.seconds(60), goodbye: Duration.seconds(5))
  private static let recordByteCount = 16 << 10
  /// Records read in one turn: the client is not the only one.
  private static let turnLimit = 16

  /// Memory that all connections of a loop use in turn.
  final class Memory: @unchecked Sendable {
    fileprivate let bytes = UnsafeMutableRawBufferPointer.allocate(
      byteCount: TLSConnection.recordByteCount, alignment: 16)
    deinit { bytes.deallocate() }
  }

  private struct Unsent {
    var bytes: [UInt8] = []
    var offset = 0
    var isEmpty: Bool { offset == bytes.count }

    mutating func keep(_ rest: UnsafeRawBufferPointer) {
      if isEmpty { bytes = [] }
      bytes.append(contentsOf: rest)
      if bytes.count == rest.count { offset = 0 }
    }

    mutating func remove(_ count: Int) {
      offset += count
      if isEmpty {
        bytes = []
        offset = 0
      }
    }
  }

  /// - Parameters:
  ///   - socket: the client's. Both sockets are taken over.
  ///   - own: at whose other end the server is.
  init(
    _ tls: OpaquePointer, _ socket: Int32, _ own: Int32, _ loop: SocketLoop, _ memory: Memory,
    ended: @escaping @Sendable (TLSConnection) -> Void
  ) {
    self.tls = tls
    self.loop = loop
    self.memory = memory
    self.ended = ended
    client = Side(socket, self)
    server = Side(own, self)
  }

  func start() {
    if let client { loop.add(client) }
    if let server { loop.add(server) }
  }

  /// Ends the connection if it has to end and has had the time for it. Any thread may call it.
  func check(at now: ContinuousClock.Instant) {
    if deadline.withLock({ $0.map { $0 <= now } ?? false }), let side = client { loop.wake(side) }
  }

  // MARK: Sockets

  private final class Side: SocketLoop.Client, @unchecked Sendable {
    let descriptor: Int32
    private let connection: TLSConnection
    var interest: SocketLoop.Interest = .reading

    init(_ descriptor: Int32, _ connection: TLSConnection) {
      self.descriptor = descriptor
      self.connection = connection
      _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK)
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    func serve(isReadable: Bool) -> SocketLoop.Interest? {
      connection.serve(self, isReadable: isReadable)
    }

    func end() { connection.close(self) }
  }

  private func serve(_ side: Side, isReadable: Bool) -> SocketLoop.Interest? {
    if deadline.withLock({ $0.map { $0 <= .now } ?? false }) { isOver = true }
    let isClient = side === client
    // What is not waited for and comes nevertheless is the end of the connection.
    let isLost = isReadable && !side.interest.contains(.reading)
    if isLost, isClient { isOver = true }
    if !isOver, isClient || !inbound.isEmpty { receive() }
    if !isOver, !isClient || !outbound.isEmpty || hasServerEnded { transmit(takesAll: isLost) }
    let other = isClient ? server : client
    if isOver || !isClient && hasServerEnded {
      close(side)
      if let other { loop.wake(other) }
      return nil
    }
    if let other, interest(of: other) != other.interest || hasServerEnded && other === server {
      loop.wake(other)
    }
    side.interest = interest(of: side)
    return side.interest
  }

  private func interest(of side: Side) -> SocketLoop.Interest {
    var interest: SocketLoop.Interest = []
    if side === client {
      if inbound.isEmpty && !hasClientEnded || writeWantsRead { interest.insert(.reading) }
      if !outbound.isEmpty && !writeWantsRead || readWantsWrite { interest.insert(.writing) }
    } else {
      if outbound.isEmpty, !hasServerEnded { interest.insert(.reading) }
      if !inbound.isEmpty { interest.insert(.writing) }
    }
    return interest
  }

  private func close(_ side: Side) {
    loop.forget(side.descriptor)
    if side === client {
      client = nil
      SSL_free(tls)
    } else if side === server {
      server = nil
    } else {
      return
    }
    if client == nil || !hasServerEnded { isOver = true }
    DendroPlatform.close(side.descriptor)
    if client == nil, server == nil { ended(self) }
  }

  // MARK: From the client to the server

  private func receive() {
    guard client != nil else { return }
    for _ in 0..<Self.turnLimit {
      while !inbound.isEmpty {
        let sent = inbound.bytes[inbound.offset...].withUnsafeBytes { give($0) }
        guard let sent else { return }
        inbound.remove(sent)
      }
      guard !hasClientEnded else { return }
      let count = Int(
        dendro_tls_read(tls, memory.bytes.baseAddress, Int32(Self.recordByteCount)))
      readWantsWrite = count == dendro_tls_wants_write
      guard count > 0 else {
        if count == dendro_tls_ended {
          hasClientEnded = true
          if let server { shutdown(server.descriptor, Int32(SHUT_WR)) }
          if hasSaidGoodbye { isOver = true }
        } else if count == dendro_tls_lost {
          isOver = true
        }
        return
      }
      let part = UnsafeRawBufferPointer(rebasing: memory.bytes[..<count])
      let sent = give(part) ?? 0
      if sent < count { inbound.keep(UnsafeRawBufferPointer(rebasing: part[sent...])) }
    }
  }

  /// - Returns: how much the server has taken; nil if it takes none now. What it will never take is dropped.
  private func give(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard let server, !hasServerEnded else { return bytes.count }
    let count = send(server.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    if count >= 0 { return count }
    return errno == EAGAIN || errno == EINTR ? nil : bytes.count
  }

  // MARK: From the server to the client

  /// - Parameter takesAll: whether the server has left, and all is taken that it has said.
  private func transmit(takesAll: Bool) {
    guard client != nil else { return }
    if takesAll { while takePart() {} }
    while true {
      while !outbound.isEmpty {
        let count = outbound.bytes[outbound.offset...].withUnsafeBytes {
          Int(dendro_tls_write(tls, $0.baseAddress, Int32(min($0.count, Self.recordByteCount))))
        }
        writeWantsRead = count == dendro_tls_wants_read
        guard count > 0 else {
          if count == dendro_tls_lost || count == dendro_tls_ended {
            isOver = true
          }
          return
        }
        outbound.remove(count)
      }
      if takePart() { continue }
      guard hasServerEnded, !hasSaidGoodbye else { return }
      hasSaidGoodbye = true
      dendro_tls_close(tls)
      if hasClientEnded { isOver = true }
      if let client { shutdown(client.descriptor, Int32(SHUT_WR)) }
      deadline.withLock { $0 = .now + Self.patience.goodbye }
      return
    }
  }

  /// Takes some of what the server has said.
  ///
  /// - Returns: false if there is none.
  private func takePart() -> Bool {
    guard let server, !hasServerEnded else { return false }
    let count = recv(server.descriptor, memory.bytes.baseAddress, Self.recordByteCount, 0)
    if count > 0 {
      outbound.keep(UnsafeRawBufferPointer(rebasing: memory.bytes[..<count]))
      return true
    }
    if count < 0, errno == EAGAIN || errno == EINTR { return false }
    hasServerEnded = true
    deadline.withLock { $0 = .now + Self.patience.flush }
    return false
  }
}
