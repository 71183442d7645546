import Foundation

// What connections cost that wait.

extension Workload {
  /// WebSockets each of which listens to ten locations of its own.
  static func idleListens(connectionCount: Int) -> Comparison {
    Comparison(
      "\((connectionCount * 10).separated) idle listeners", "listeners",
      [
        Contestant("dendro, 10 on a WebSocket") { turn in
          let count = turn.scaled(connectionCount)
          return try withServer(turn) { server in
            _ = try listeners(10, server)
            let before = server.residentByteCount
            let connections = try listeners(count, server)
            for (number, connection) in connections.enumerated() {
              for listen in 1..<10 {
                _ = try connection.callWire(
                  WireRequestBytes.request(
                    listen + 1, "q", "{\"p\":\"/rooms/\(number)/\(listen)\",\"h\":\"\"}"))
              }
            }
            let bytes = server.residentByteCount - before
            var measurement = Measurement()
            measurement.add("memory", "bytes a listener", Double(bytes) / Double(count * 10))
            return measurement
          }
        }
      ])
  }

  static func idle(connectionCount: Int) -> Comparison {
    Comparison(
      "idle connections", "connections",
      [
        Contestant("dendro, WebSocket with a listen") { turn in
          let count = turn.scaled(connectionCount)
          return try withServer(turn) { server in
            let warm = try listeners(10, server)
            let before = server.residentByteCount
            let connections = try listeners(count, server)
            let bytes = server.residentByteCount - before
            var measurement = Measurement()
            measurement.add("memory", "bytes a connection", Double(bytes) / Double(count))
            try expect(connections.count == count && warm.count == 10, "all are open")
            return measurement
          }
        },
        redisIdle(connectionCount),
      ])
  }

  private static func redisIdle(_ connectionCount: Int) -> Contestant? {
    #if canImport(CDendroRedis)
      .redis("subscriber", .buffered) { turn, redis in
        let count = turn.scaled(connectionCount)
        let info = try redis.connection.command("INFO", "server")
        let id = info.split(whereSeparator: \.isNewline).first { $0.hasPrefix("process_id:") }
        let process = id.flatMap { Int32($0.dropFirst("process_id:".count)) } ?? 0
        let before = ServeProcess.residentByteCount(of: process)
        let connections = try redis.loadConnections(count)
        for connection in connections {
          _ = try connection.call(RedisRequest.command("SUBSCRIBE", "room"))
        }
        let bytes = ServeProcess.residentByteCount(of: process) - before
        var measurement = Measurement()
        measurement.add("memory", "bytes a connection", Double(bytes) / Double(count))
        return measurement
      }
    #else
      nil
    #endif
  }
}
