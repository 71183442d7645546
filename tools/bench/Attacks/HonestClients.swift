import Synchronization

/// Clients of which half get and put by REST, and half put over WebSockets.
enum HonestClients {
  static func all(_ count: Int, _ server: ServeProcess) throws -> [PacedLoad.Client] {
    try (0..<count).map { number in
      let connection = try LoadConnection(port: server.port)
      let path = "honest/c\(number)"
      if isSocket(number) {
        try connection.upgrade()
        let request: (Int) -> [UInt8] = {
          WireRequestBytes.request($0 + 1, "p", "{\"p\":\"/\(path)\",\"d\":\(1_000_000 + $0)}")
        }
        let answer = try connection.callWire(request(-1))
        return PacedLoad.Client(
          connection: connection, request: request, answerByteCount: answer.count,
          answerStart: Array(answer.prefix(2)))
      }
      let put = HTTPRequest.put(path, "1000000")
      let written = try connection.call(put)
      if number % 4 == 1 {
        return PacedLoad.Client(
          connection: connection, request: { HTTPRequest.put(path, "\(1_000_000 + $0)") },
          answerByteCount: written.count, answerStart: Array("HTTP/1.1 204".utf8))
      }
      let get = HTTPRequest.get(path)
      let answer = try connection.call(get)
      return PacedLoad.Client(
        connection: connection, request: { _ in get }, answerByteCount: answer.count,
        answerStart: Array("HTTP/1.1 200".utf8))
    }
  }

  private static func isSocket(_ number: Int) -> Bool { number % 2 == 0 }

  static func socketCount(_ count: Int) -> Int { (0..<count).count(where: isSocket) }
}

/// A client that comes anew every 50 ms, asks once, and leaves.
struct Newcomers {
  private let latencies = Samples()
  private let work: RepeatedWork

  init(_ port: UInt16) {
    let clock = ContinuousClock()
    work = RepeatedWork(pause: 0.05) { [latencies] in
      let start = clock.now
      let answer = try LoadConnection(port: port).call(HTTPRequest.get("honest/c0"))
      try expect(answer.starts(with: Array("HTTP/1.1 200".utf8)), "a newcomer is served")
      latencies.append((clock.now - start) / .seconds(1))
    }
  }

  /// - Returns: how long each took from the connection to the answer, in seconds.
  func stop() throws -> [Double] {
    try work.stop()
    return latencies.all
  }
}

/// Looks at the memory of a server every 20 ms.
struct MemorySampler {
  private let byteCounts = Samples()
  private let work: RepeatedWork

  init(_ server: ServeProcess) {
    work = RepeatedWork(pause: 0.02) { [byteCounts, process = server.processID] in
      byteCounts.append(Double(ServeProcess.residentByteCount(of: process)))
    }
  }

  /// - Returns: the most bytes that were seen.
  func stop() throws -> Double {
    try work.stop()
    return byteCounts.all.max() ?? 0
  }
}

/// What several threads have measured.
private final class Samples: Sendable {
  private let values = Mutex<[Double]>([])

  func append(_ value: Double) { values.withLock { $0.append(value) } }

  var all: [Double] { values.withLock(\.self) }
}
