import DendroPlatform
import Dispatch

/// Takes the connections that come to one address.
///
/// Unchecked: `isEnded` is used on the loop's thread only, and once nothing else holds the listener.
final class Listener: SocketLoop.Client, @unchecked Sendable {
  /// What becomes of connections. Called on the loop's thread.
  struct Door: Sendable {
    /// Whether there is room for one more.
    let isOpen: @Sendable () -> Bool
    /// Takes over a socket, with the address of its other end.
    let take: @Sendable (Int32, UnsafePointer<sockaddr>, socklen_t) -> Void
  }

  let descriptor: Int32
  let port: UInt16
  private let door: Door
  private let hasEnded = DispatchSemaphore(value: 0)
  private var isEnded = false

  /// Why there can be none: an error's number of the system.
  private struct Refusal: Error { let code: Int32 }

  /// Opens one for each address that the hosts stand for, all at the same port.
  ///
  /// - Parameter port: 0 lets the system choose one.
  static func open(
    _ hosts: [String], port: UInt16, _ door: Door
  ) throws(DatabaseServerError) -> [Listener] {
    guard !hosts.isEmpty else { throw DatabaseServerError("there is no address to listen at") }
    var code: Int32 = 0
    var place = ""
    // A port that is free at one address may be taken at another one.
    attempts: for _ in 0..<(port == 0 ? 16 : 1) {
      var listeners: [Listener] = []
      var seen: Set<String> = []
      for host in hosts {
        for name in SocketAddress.names(of: host) where seen.insert(name).inserted {
          let chosen = listeners.first?.port ?? port
          let address = try SocketAddress(numeric: name, port: chosen, of: host)
          do {
            listeners.append(try Listener(address, door))
          } catch {
            code = error.code
            place = name.contains(":") ? "[\(name)]:\(chosen)" : "\(name):\(chosen)"
            // A machine without IPv6 has a localhost too.
            if host != name, !listeners.isEmpty, code != EADDRINUSE, code != EMFILE { continue }
            if code == EADDRINUSE { continue attempts }
            break attempts
          }
        }
      }
      return listeners
    }
    throw DatabaseServerError("cannot listen at \(place): \(String(cString: strerror(code)))")
  }

  private init(_ address: SocketAddress, _ door: Door) throws(Refusal) {
    self.door = door
    let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Refusal(code: errno) }
    self.descriptor = descriptor
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    // Otherwise all addresses of IPv6 would have those of IPv4 among them.
    if address.family == AF_INET6 {
      setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size)
    }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK)
    let isBound = address.withPointer { bind(descriptor, $0, $1) } == 0
    guard isBound, listen(descriptor, SOMAXCONN) == 0,
      let port = SocketAddress(boundTo: descriptor)?.port
    else {
      let code = errno
      close(descriptor)
      throw Refusal(code: code)
    }
    self.port = port
  }

  deinit { if !isEnded { close(descriptor) } }

  func serve(isReadable: Bool) -> SocketLoop.Interest? {
    for _ in 0..<64 {
      // Whoever waits for room is woken when there is some.
      guard door.isOpen() else { return [] }
      var storage = sockaddr_storage()
      var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let isOver = withUnsafeMutablePointer(to: &storage) { storage in
        storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Bool in
          let socket = accept(descriptor, address, &size)
          guard socket >= 0 else { return errno != EINTR && errno != ECONNABORTED }
          _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
          door.take(socket, address, size)
          return false
        }
      }
      // The system has no connection; or no descriptor or no memory for it, which time may change.
      if isOver { return errno == EAGAIN ? .reading : [] }
    }
    return .reading
  }

  func end() {
    isEnded = true
    close(descriptor)
    hasEnded.signal()
  }

  /// Waits until the loop has ended it.
  func waitForEnd() { hasEnded.wait() }
}
