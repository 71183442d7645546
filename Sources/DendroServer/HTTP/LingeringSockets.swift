import DendroPlatform
import Synchronization

/// Connections whose answers were sent before all of their requests had come.
///
/// If they were just closed, the system would tell their clients that the connection is broken, perhaps before they have
/// read the answer. So what still comes is dropped for a while.
final class LingeringSockets: Sendable {
  private let loop: SocketLoop
  private let sockets = Mutex<[ObjectIdentifier: Lingering]>([:])
  /// Beyond which connections are just closed.
  private static let countMax = 256
  private static let patience = Duration.seconds(5)

  private final class Lingering: SocketLoop.Client {
    let descriptor: Int32
    let deadline = ContinuousClock.now + LingeringSockets.patience
    private let ended: @Sendable (Lingering) -> Void
    /// Bytes that are dropped in one turn.
    private static let turnByteLimit = 256 << 10

    init(_ descriptor: Int32, ended: @escaping @Sendable (Lingering) -> Void) {
      self.descriptor = descriptor
      self.ended = ended
    }

    func serve(isReadable: Bool) -> SocketLoop.Interest? {
      var bytes = [UInt8](repeating: 0, count: 16 << 10)
      for _ in 0..<Self.turnByteLimit / bytes.count {
        guard ContinuousClock.now < deadline else { break }
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        if count > 0 { continue }
        if count < 0, errno == EAGAIN || errno == EINTR { return .reading }
        end()
        return nil
      }
      guard ContinuousClock.now >= deadline else { return .reading }
      end()
      return nil
    }

    func end() {
      close(descriptor)
      ended(self)
    }
  }

  init(_ loop: SocketLoop) { self.loop = loop }

  /// Takes over another descriptor of a connection that is about to be closed; -1 is none.
  func add(_ descriptor: Int32) {
    guard descriptor >= 0 else { return }
    let lingering = Lingering(descriptor) { [weak self] ended in
      self?.sockets.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(ended)) }
    }
    let isTaken = sockets.withLock { sockets in
      guard sockets.count < Self.countMax else { return false }
      sockets[ObjectIdentifier(lingering)] = lingering
      return true
    }
    guard isTaken else {
      close(descriptor)
      return
    }
    loop.add(lingering)
  }

  /// To be called about once a second.
  func tick() {
    let now = ContinuousClock.now
    for lingering in sockets.withLock({ Array($0.values) }) where lingering.deadline <= now {
      loop.wake(lingering)
    }
  }
}
