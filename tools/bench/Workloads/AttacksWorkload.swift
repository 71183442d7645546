import Dendro
import DendroPlatform
import Foundation

extension Workload {
  static let attacks = Workload(
    "attacks",
    """
    dendro serve with rules: 64 honest clients, each with a request every 20 ms, and one that comes anew every 50 ms, \
    alone and beside hostile clients of each kind and of all kinds at once.
    """,
    [
      Comparison(
        "64 honest clients", "requests",
        [honestClients("alone") { _ in [] }]
          + Attack.all.map { attack in
            honestClients(
              "beside \(attack.clientCount.separated) × \(attack.name)",
              opensServer: attack.needsOpenServer
            ) { [attack.scaled($0.scaled(attack.clientCount))] }
          } + [
            honestClients("beside 1,000 of all kinds") { Attack.crowd($0.scaled(1_000)) }
          ])
    ])

  private static let publicRules = """
    {"rules": {
      ".read": true,
      "honest": {".write": true},
      "public": {".write": true},
      "list": {".write": "newData.hasChild('k1')", ".indexOn": "n"}
    }}
    """

  private static func honestClients(
    _ name: String, opensServer: Bool = false, _ attacks: @escaping @Sendable (Turn) -> [Attack]
  ) -> Contestant {
    Contestant("dendro, \(name)") { turn in
      var options: [String] = []
      if !opensServer {
        let file = turn.directory.appendingPathExtension("rules.json")
        try Data(publicRules.utf8).write(to: file)
        options = ["--rules", file.path]
      }
      let server = try ServeProcess(at: turn.directory, options: options)
      defer { server.stop() }
      return try await attacked(server, turn, attacks(turn))
    }
  }

  private static func attacked(
    _ server: ServeProcess, _ turn: Turn, _ attacks: [Attack]
  ) async throws -> Measurement {
    let seconds = turn.isQuick ? 1.0 : 10
    let childCount = turn.scaled(200_000)
    try fill(server, childCount)
    let load = PacedLoad(clients: try HonestClients.all(64, server), interval: 0.02)
    // What the honest ones make the server hold is there before it is looked at.
    _ = try load.run(for: seconds / 10)
    let before = (memory: server.residentByteCount, descriptors: server.descriptorCount)
    let sampler = MemorySampler(server)
    let crowd = Crowd(attacks, port: server.port)
    // All of them have come.
    _ = try load.run(for: seconds / 10)
    let newcomers = Newcomers(server.port)
    let processorSeconds = server.processorSeconds
    var latencies: [Double] = []
    var measurement = try Measurement.blocking(1) { latencies = try load.run(for: seconds) }
    measurement.count = latencies.count
    measurement.serverProcessorSeconds = server.processorSeconds - processorSeconds
    measurement.addLatencies(latencies)
    measurement.addLatencies(try newcomers.stop(), "of a new connection")
    let record = try crowd.stop()
    let left = ContinuousClock.now
    // The honest ones stay.
    defer { withExtendedLifetime(load) {} }
    try await untilLeft(server, descriptors: before.descriptors)
    let peak = try sampler.stop()
    try expectWhole(server, childCount)
    measurement.add("memory before", "MB", Double(before.memory) / 1e6)
    measurement.add("memory at most", "MB", peak / 1e6)
    if !attacks.isEmpty {
      measurement.add("memory afterwards", "MB", Double(server.residentByteCount) / 1e6)
      measurement.add(
        "until all is given back", "s", (ContinuousClock.now - left) / .seconds(1))
      measurement.add("hostile connections", "connections", Double(record.connectionCount))
      measurement.add("ended by the server", "connections", Double(record.endCount))
      measurement.add("hostile messages", "messages", Double(record.messageCount))
    }
    return measurement
  }

  /// A list of 100 bytes a child.
  private static func fill(_ server: ServeProcess, _ count: Int) throws {
    let text = String(repeating: "x", count: 70)
    let list = (0..<count).map { "\"k\($0)\":{\"n\":\($0),\"t\":\"\(text)\"}" }
    let json = "{" + list.joined(separator: ",") + "}"
    let head =
      "PUT /list.json?print=silent HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(json.utf8.count)\r\n\r\n"
    let connection = try LoadConnection(port: server.port)
    let answer = try connection.call(Array((head + json).utf8))
    try expect(answer.starts(with: Array("HTTP/1.1 204".utf8)), "the list is written")
  }

  private static func expectWhole(_ server: ServeProcess, _ count: Int) throws {
    let connection = try LoadConnection(port: server.port)
    for number in [0, 1, count / 2, count - 1] {
      let answer = String(
        decoding: try connection.call(HTTPRequest.get("list/k\(number)/n")), as: UTF8.self)
      try expect(answer.hasSuffix("\r\n\r\n\(number)"), "the list is as it was: \(answer)")
    }
  }

  /// Waits until the server has let go what belonged to hostile clients.
  private static func untilLeft(_ server: ServeProcess, descriptors: Int) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    let connection = try LoadConnection(port: server.port)
    let request = Array(
      "GET /.metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer owner\r\n\r\n".utf8)
    while true {
      let text = String(decoding: try connection.call(request), as: UTF8.self)
      func figure(_ name: String) -> Int {
        text.split(separator: "\r\n\r\n").last?.split(separator: "\n").first {
          $0.hasPrefix(name + " ")
        }.flatMap { Int($0.dropFirst(name.count + 1)) } ?? -1
      }
      let sessions = figure("dendro_sessions")
      let bytes = figure("dendro_session_bytes")
      let streams = figure("dendro_streams")
      // This connection is one more.
      let more = server.descriptorCount - descriptors - 1
      if sessions == HonestClients.socketCount(64), streams == 0, more <= 4, bytes < 1 << 20 {
        return
      }
      try expect(
        ContinuousClock.now < deadline,
        """
        nothing of hostile clients is kept: \(sessions) sessions with \(bytes) bytes, \(streams) streams, \
        \(more) descriptors more
        """)
      try await Task.sleep(for: .milliseconds(100))
    }
  }
}
