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
