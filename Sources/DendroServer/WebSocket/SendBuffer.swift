import DendroPlatform

/// Bytes for a socket that are sent together.
struct SendBuffer {
  private var bytes: [UInt8] = []
  private var sentCount = 0
  /// What the socket has taken so far.
  private(set) var sentByteCount = 0
  /// The socket takes no bytes any more.
  private(set) var isLost = false
  /// As much is collected before it is sent.
  private static let byteLimit = 64 << 10

  var isEmpty: Bool { bytes.isEmpty }

  /// - Returns: false if the socket takes nothing now, and so much waits already.
  mutating func append(_ new: UnsafeBufferPointer<UInt8>, to socket: Int32) -> Bool {
    if bytes.count >= Self.byteLimit {
      guard flush(to: socket), bytes.isEmpty else { return false }
    }
    bytes.append(contentsOf: new)
    return true
  }

  /// Sends what the socket takes.
  ///
  /// - Returns: false if the connection is lost.
  mutating func flush(to socket: Int32) -> Bool {
    while sentCount < bytes.count, !isLost {
      let result = bytes[sentCount...].withUnsafeBytes {
        send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if result >= 0 {
        sentCount += result
        sentByteCount += result
      } else if errno == EAGAIN {
        return true
      } else if errno != EINTR {
        isLost = true
      }
    }
    bytes.removeAll(keepingCapacity: true)
    sentCount = 0
    return !isLost
  }

  /// Takes over memory for a turn, if the buffer has none.
  mutating func borrow(_ memory: inout [UInt8]) {
    if bytes.capacity == 0 { swap(&bytes, &memory) }
  }

  /// Gives the memory back, if the buffer is empty.
  mutating func giveBack(_ memory: inout [UInt8]) {
    guard bytes.isEmpty, bytes.capacity > 0 else { return }
    swap(&bytes, &memory)
    bytes = []
  }
}
