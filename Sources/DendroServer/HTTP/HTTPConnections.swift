import DendroPlatform
import Dispatch
import Synchronization

/// The connections of a server, so that they can be ended before libmicrohttpd is stopped.
///
/// A connection must not be open then: libmicrohttpd 0.9.75 queues no response while it stops, and crashes if it
/// refuses a malformed request by itself.
final class HTTPConnections: Sendable {
  private struct State {
    /// Accepted, and not begun.
    var acceptedCount = 0
    var sockets: Set<Int32> = []
    var acceptsMore = true
  }

  private let state = Mutex(State())

  /// Whether one more connection is accepted. If so, `begin` follows.
  func accept() -> Bool {
    state.withLock { state in
      if state.acceptsMore { state.acceptedCount += 1 }
      return state.acceptsMore
    }
  }

  func begin(_ socket: Int32) {
    state.withLock { state in
      state.acceptedCount -= 1
      state.sockets.insert(socket)
    }
  }

  /// The socket is closed next.
  func end(_ socket: Int32) { state.withLock { _ = $0.sockets.remove(socket) } }

  /// Accepts no more connections, ends those that there are, and waits until libmicrohttpd is done with them.
  ///
  /// - Parameter limit: what a connection is waited for at most.
  func endAll(within limit: Duration) {
    let pause = DispatchSemaphore(value: 0)
    let deadline = ContinuousClock.now + limit
    while shutDown(), ContinuousClock.now < deadline {
      _ = pause.wait(timeout: .now() + .milliseconds(1))
    }
  }

  /// - Returns: whether there are connections.
  private func shutDown() -> Bool {
    state.withLock { state in
      state.acceptsMore = false
      for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
      return state.acceptedCount > 0 || !state.sockets.isEmpty
    }
  }
}
