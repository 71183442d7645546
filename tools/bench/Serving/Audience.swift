import DendroPlatform
import Foundation

/// Connections that wait for messages of one length.
final class Audience {
  private let connections: [LoadConnection]
  private var sockets: ReadableSockets

  init(_ connections: [LoadConnection]) {
    self.connections = connections
    sockets = ReadableSockets(connections)
  }

  /// Waits until every connection has got one message.
  ///
  /// - Returns: how long after `start` each got it, in seconds.
  func receive(_ messageByteCount: Int, since start: ContinuousClock.Instant) throws -> [Double] {
    var seconds: [Double] = []
    seconds.reserveCapacity(connections.count)
    var byteCounts = connections.map { _ in 0 }
    var buffer = [UInt8](repeating: 0, count: 4096)
    while seconds.count < connections.count {
      for index in try sockets.next() {
        let count = recv(connections[index].descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw ServeError(description: "a listener was cut off") }
        byteCounts[index] += count
        try expect(byteCounts[index] <= messageByteCount, "every listener gets one message")
        if byteCounts[index] == messageByteCount {
          seconds.append((ContinuousClock.now - start) / .seconds(1))
        }
      }
    }
    return seconds
  }
}

/// Waits for those of many sockets that can be read.
struct ReadableSockets {
  private var sockets: [pollfd]

  init(_ connections: [LoadConnection]) {
    sockets = connections.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
  }

  /// The indices of those that can be read; waits for one.
  mutating func next() throws -> [Int] {
    let indices = try next(within: 60)
    try expect(!indices.isEmpty, "bytes within a minute")
    return indices
  }

  /// The indices of those that can be read; waits for one, so many seconds at most.
  mutating func next(within seconds: Double) throws -> [Int] {
    let count = poll(&sockets, nfds_t(sockets.count), Int32(max(0, seconds * 1000).rounded(.up)))
    try expect(count >= 0 || errno == EINTR, "sockets that can be waited for")
    return count > 0 ? sockets.indices.filter { sockets[$0].revents != 0 } : []
  }
}
