import Synchronization

/// Keeps used buffers, with their memory, for the next large write. Any thread may use it.
final class PayloadBufferPool: Sendable {
  private static let countMax = 16
  private let buffers = Mutex<[PayloadBuffer]>([])

  /// An empty buffer.
  func take() -> PayloadBuffer { buffers.withLock { $0.popLast() } ?? PayloadBuffer() }

  func giveBack(_ buffer: PayloadBuffer) {
    buffer.removeAll()
    buffers.withLock { if $0.count < Self.countMax { $0.append(buffer) } }
  }
}
