import CDendroWSLay
import DendroPlatform

/// Waits for sockets, and can be woken by other threads.
final class Waiter: Sendable {
  enum Outcome: Sendable {
    case woken
    case ready
    case networkChanged
    case timedOut
  }

  /// -1 if the system had none left: then waiting takes turns.
  private let waker = dendro_waker_open()
  /// Says that addresses of this machine change.
  private let network = Waiter.openNetwork()

  /// A socket that becomes readable when interfaces or addresses of this machine change; -1 if there is none.
  private static func openNetwork() -> Int32 {
    let network = Connector.socket(AF_NETLINK, SOCK_RAW)
    if network < 0 { return -1 }
    // `struct sockaddr_nl` of linux/netlink.h, and the groups RTMGRP_LINK, RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR.
    var address: (family: UInt16, padding: UInt16, port: UInt32, groups: UInt32) = (
      UInt16(AF_NETLINK), 0, 0, 0x1 | 0x10 | 0x100
    )
    let size = socklen_t(MemoryLayout.size(ofValue: address))
    // Without the right to hear of changes it never becomes readable.
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = bind(network, $0, size) }
    }
    return network
  }

  deinit {
    if waker >= 0 { close(waker) }
    if network >= 0 { close(network) }
  }

  func wake() {
    var one: UInt64 = 1
    _ = write(waker, &one, MemoryLayout<UInt64>.size)
  }

  /// Waits for a socket, if there is one, until another thread wakes this one.
  ///
  /// - Parameter time: nil for ever.
  @discardableResult
  func wait(
    for socket: Int32 = -1, writing: Bool = false, reading: Bool = true,
    until time: ContinuousClock.Instant?
  ) -> Outcome {
    var events = reading ? Int16(POLLIN) : 0
    if writing { events |= Int16(POLLOUT) }
    // A negative descriptor is passed over. A socket in use shows by itself that the network is gone.
    var polled = [
      pollfd(fd: waker, events: Int16(POLLIN), revents: 0),
      pollfd(fd: socket, events: events, revents: 0),
      pollfd(fd: socket < 0 ? network : -1, events: Int16(POLLIN), revents: 0),
    ]
    var timeout: Int32 = waker < 0 ? 20 : -1
    if let time {
      let rest = max(.zero, time - .now)
      let milliseconds = Int32(min(1_000_000, (rest / .milliseconds(1)).rounded(.up)))
      timeout = timeout < 0 ? milliseconds : min(timeout, milliseconds)
    }
    let count = poll(&polled, nfds_t(polled.count), timeout)
    guard count > 0 else { return count == 0 ? .timedOut : .woken }
    if polled[0].revents != 0 {
      var number: UInt64 = 0
      _ = read(waker, &number, MemoryLayout<UInt64>.size)
    }
    if polled[2].revents != 0 {
      var bytes = [UInt8](repeating: 0, count: 8192)
      while recv(network, &bytes, bytes.count, 0) > 0 {}
      return .networkChanged
    }
    return polled[1].revents != 0 ? .ready : .woken
  }

  /// Waits until one of several sockets can be written.
  func wait(forAny sockets: [Int32], until time: ContinuousClock.Instant) {
    var polled = sockets.map { pollfd(fd: $0, events: Int16(POLLOUT), revents: 0) }
    polled.append(pollfd(fd: waker, events: Int16(POLLIN), revents: 0))
    let rest = max(.zero, time - .now)
    let timeout = Int32(min(1_000_000, (rest / .milliseconds(1)).rounded(.up)))
    guard poll(&polled, nfds_t(polled.count), waker < 0 ? min(20, timeout) : timeout) > 0 else {
      return
    }
    if polled[sockets.count].revents != 0 {
      var number: UInt64 = 0
      _ = read(waker, &number, MemoryLayout<UInt64>.size)
    }
  }
}
