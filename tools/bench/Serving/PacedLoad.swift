import DendroPlatform

/// Requests of clients each of which sends one at fixed times, as people do: how long a request takes then shows what
/// others do to the server, and not how much the clients ask for themselves.
struct PacedLoad {
  /// A client with one request in flight.
  struct Client {
    let connection: LoadConnection
    let request: (Int) -> [UInt8]
    /// Of one answer.
    let answerByteCount: Int
    /// How each answer begins.
    let answerStart: [UInt8]
  }

  let clients: [Client]
  /// Seconds from one request of a client to its next.
  let interval: Double

  /// - Returns: how long each request took, in seconds. One that had to wait for the answer to the one before it took
  ///   the time since it was to be sent.
  func run(for seconds: Double) throws -> [Double] {
    let clock = ContinuousClock()
    let begin = clock.now
    var states = clients.indices.map {
      State(due: interval * Double($0) / Double(clients.count))
    }
    var sockets = ReadableSockets(clients.map(\.connection))
    var latencies: [Double] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let now = (clock.now - begin) / .seconds(1)
      for index in clients.indices where states[index].start == nil && states[index].due <= now {
        if states[index].due < seconds { try send(index, &states[index], at: now) }
      }
      let oldest = states.lazy.compactMap(\.start).min()
      if now >= seconds, oldest == nil { return latencies }
      try expect(now - (oldest ?? now) < 60, "an answer within a minute")
      let due = states.lazy.filter { $0.start == nil && $0.due < seconds }.map(\.due).min()
      let ready = try sockets.next(within: min((due ?? now + 1) - now, 1))
      for index in ready {
        let count = recv(clients[index].connection.descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw ServeError(description: "a connection was lost") }
        let bytes = buffer[..<count]
        try expect(
          states[index].byteCount > 0
            || clients[index].answerStart.starts(
              with: bytes.prefix(clients[index].answerStart.count)),
          "a good answer, and not \(String(decoding: bytes.prefix(200), as: UTF8.self))")
        states[index].byteCount += count
        guard states[index].byteCount >= clients[index].answerByteCount,
          let start = states[index].start
        else { continue }
        let end = (clock.now - begin) / .seconds(1)
        latencies.append(end - start)
        states[index].start = nil
        states[index].byteCount = 0
        if states[index].due < min(end, seconds) {
          try send(index, &states[index], at: states[index].due)
        }
      }
    }
  }

  private struct State {
    /// When the next request is to be sent.
    var due: Double
    /// Since when the one that is in flight counts.
    var start: Double?
    /// Of an answer that has not come as a whole.
    var byteCount = 0
    var sentCount = 0
  }

  private func send(_ index: Int, _ state: inout State, at start: Double) throws {
    state.start = start
    state.due += interval
    try clients[index].connection.send(clients[index].request(state.sentCount))
    state.sentCount += 1
  }
}
