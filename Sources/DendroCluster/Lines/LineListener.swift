import DendroPlatform
import Synchronization

/// Takes the lines that other servers open.
final class LineListener: LineLoop.Member {
  let descriptor: Int32
  /// Takes over the sockets.
  let taken = Mutex<@Sendable (Int32) -> Void> { close($0) }

  /// - Parameter descriptor: of a socket that listens; the listener's from now on.
  init(_ descriptor: Int32) { self.descriptor = descriptor }

  func serve(isReady: Bool) -> Int16? {
    let take = taken.withLock { $0 }
    var count = 0
    while isReady, count < 64 {
      guard let socket = LineSocket.accept(descriptor) else {
        // Without a descriptor or memory for it, it waits for the next turn of the loop, which comes within a second.
        if errno != EAGAIN { return 0 }
        break
      }
      take(socket)
      count += 1
    }
    return Int16(POLLIN)
  }

  func end() { close(descriptor) }
}
