import DendroPlatform
import Foundation

/// Requests over several connections, with so many in flight on each. One thread sends and reads: it counts bytes
/// instead of parsing them, since all answers have one length, and looks at how each piece begins.
struct RequestLoad {
  let connections: [LoadConnection]
  /// Requests that one connection has in flight.
  var depth = 1
  let request: (Int) -> [UInt8]
  /// Of one answer.
  let answerByteCount: Int
  /// How each answer begins.
  let answerStart: [UInt8]

  /// - Returns: how long each request took, in seconds.
  func run(_ count: Int) throws -> [Double] {
    var states = connections.map { _ in ConnectionState() }
    var sentCount = 0
    var seconds: [Double] = []
    seconds.reserveCapacity(count)
    for (index, connection) in connections.enumerated() {
      for _ in 0..<depth where sentCount < count {
        states[index].starts.append(.now)
        try connection.send(request(sentCount))
        sentCount += 1
      }
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    defer { buffer.deallocate() }
    var waiting = ReadableSockets(connections)
    while seconds.count < count {
      for index in try waiting.next() {
        let readCount = recv(connections[index].descriptor, buffer.baseAddress, buffer.count, 0)
        guard readCount > 0 else { throw ServeError(description: "a connection was lost") }
        if states[index].byteCount == 0 {
          let start = buffer[..<min(readCount, answerStart.count)]
          guard answerStart.starts(with: start) else {
            let text = String(decoding: buffer[..<min(readCount, 200)], as: UTF8.self)
            throw ServeError(description: "a request was answered with \(text)")
          }
        }
        states[index].byteCount += readCount
        var next: [UInt8] = []
        let now = ContinuousClock.now
        while states[index].byteCount >= answerByteCount {
          states[index].byteCount -= answerByteCount
          seconds.append((now - states[index].takeStart()) / .seconds(1))
          if sentCount < count {
            states[index].starts.append(now)
            next += request(sentCount)
            sentCount += 1
          }
        }
        if !next.isEmpty { try connections[index].send(next) }
      }
    }
    return seconds
  }

  private struct ConnectionState {
    /// When the requests in flight were sent.
    var starts: [ContinuousClock.Instant] = []
    private var first = 0
    /// Of an answer that has not come as a whole.
    var byteCount = 0

    mutating func takeStart() -> ContinuousClock.Instant {
      defer {
        first += 1
        if first == starts.count || first > 1_000 {
          starts.removeFirst(first)
          first = 0
        }
      }
      return starts[first]
    }
  }
}
