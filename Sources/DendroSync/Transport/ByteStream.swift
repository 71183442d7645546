import CDendroCrypto
import DendroPlatform

/// A connection of bytes that does not block, perhaps encrypted. It owns its socket.
final class ByteStream {
  enum Outcome {
    case bytes(Int)
    /// None can be read or written now.
    case waiting
    case ended
    case failed(TransportError)
  }

  let descriptor: Int32
  private var tls: OpaquePointer?
  /// Whether TLS has to write before it can go on to read.
  private(set) var readWantsToWrite = false

  /// - Parameter descriptor: taken over.
  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit {
    if let tls { SSL_free(tls) }
    close(descriptor)
  }

  // MARK: TLS

  /// Encrypts it from now on, if the server proves that it is this host.
  ///
  /// - Parameter trust: nil for the certificates of the system.
  func encrypt(
    as host: String, trusting trust: TrustedCertificates?, _ waiter: Waiter,
    until deadline: ContinuousClock.Instant,
    isOver: () -> Bool
  ) throws(TransportError) {
    // Read now, and not before: they are many, and most connections within a machine need none.
    let trust = trust ?? .system
    guard let context = trust.context else {
      throw .certificate("there are no certificates in \(trust.file ?? "the system's files")")
    }
    guard let tls = dendro_tls_connect(context, trust.transport, descriptor, host) else {
      throw .certificate("there is no memory for it")
    }
    self.tls = tls
    while true {
      if isOver() { throw .interrupted }
      if .now >= deadline { throw .timedOut }
      switch dendro_tls_handshake(tls) {
      case 1: return
      case Int32(dendro_tls_wants_read): waiter.wait(for: descriptor, until: deadline)
      case Int32(dendro_tls_wants_write):
        waiter.wait(for: descriptor, writing: true, reading: false, until: deadline)
      default:
        var text = [CChar](repeating: 0, count: 256)
        dendro_tls_failure(tls, &text, text.count)
        throw .certificate(
          text.withUnsafeBufferPointer { String(cString: $0.baseAddress.unsafelyUnwrapped) })
      }
    }
  }

  // MARK: Bytes

  func read(_ bytes: UnsafeMutableRawPointer, _ count: Int) -> Outcome {
    guard let tls else {
      let result = recv(descriptor, bytes, count, 0)
      if result > 0 { return .bytes(result) }
      if result == 0 { return .ended }
      return errno == EAGAIN || errno == EINTR ? .waiting : .failed(.last("recv"))
    }
    let result = dendro_tls_read(tls, bytes, Int32(min(count, 1 << 20)))
    readWantsToWrite = result == Int32(dendro_tls_wants_write)
    return outcome(result)
  }

  func write(_ bytes: UnsafeRawPointer, _ count: Int) -> Outcome {
    guard let tls else {
      let result = DendroPlatform.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
      if result >= 0 { return .bytes(result) }
      return errno == EAGAIN || errno == EINTR ? .waiting : .failed(.last("send"))
    }
    return outcome(dendro_tls_write(tls, bytes, Int32(min(count, 1 << 20))))
  }

  private func outcome(_ result: Int32) -> Outcome {
    switch result {
    case Int32(dendro_tls_wants_read), Int32(dendro_tls_wants_write): .waiting
    case Int32(dendro_tls_ended): .ended
    case Int32(dendro_tls_lost): .failed(.ended)
    default: .bytes(Int(result))
    }
  }

  /// Says that nothing follows.
  func finish() { if let tls { dendro_tls_close(tls) } }

  // MARK: Text, before there are frames

  func writeAll(
    _ text: String, _ waiter: Waiter, until deadline: ContinuousClock.Instant, isOver: () -> Bool
  ) throws(TransportError) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      if isOver() { throw .interrupted }
      if .now >= deadline { throw .timedOut }
      switch rest.withUnsafeBytes({ write($0.baseAddress.unsafelyUnwrapped, $0.count) }) {
      case .bytes(let count): rest = rest.dropFirst(count)
      case .waiting: waiter.wait(for: descriptor, writing: true, reading: false, until: deadline)
      case .ended: throw .ended
      case .failed(let error): throw error
      }
    }
  }

  /// Reads the head of an answer, and not a byte beyond what the server has sent with it.
  ///
  /// - Returns: the head without the empty line at its end, and what came behind it.
  func readHead(
    _ waiter: Waiter, until deadline: ContinuousClock.Instant, isOver: () -> Bool
  ) throws(TransportError) -> (head: String, rest: [UInt8]) {
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while true {
      if isOver() { throw .interrupted }
      if .now >= deadline { throw .timedOut }
      switch part.withUnsafeMutableBytes({ read($0.baseAddress.unsafelyUnwrapped, $0.count) }) {
      case .bytes(let count): bytes += part[..<count]
      case .waiting: waiter.wait(for: descriptor, writing: readWantsToWrite, until: deadline)
      case .ended: throw .ended
      case .failed(let error): throw error
      }
      if let end = Self.end(of: bytes) {
        return (String(decoding: bytes[..<end], as: UTF8.self), Array(bytes[(end + 4)...]))
      }
      if bytes.count > 16 << 10 { throw .refused("the head of the answer is too long") }
    }
  }

  private static func end(of bytes: [UInt8]) -> Int? {
    let mark = Array("\r\n\r\n".utf8)
    guard bytes.count >= 4 else { return nil }
    return (0...bytes.count - 4).first { bytes[$0..<$0 + 4].elementsEqual(mark) }
  }
}
