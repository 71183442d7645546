import Dendro
import DendroPlatform
import Foundation

extension Workload {
  static let serve = Workload(
    "serve",
    """
    dendro serve beside a Redis server, each a process of its own: puts and gets over 64 connections and 64 in \
    flight on one, a write to 10,000 listeners, the memory of idle connections, and the time from the start to the \
    first answer.
    """,
    [
      puts(.durable), puts(.buffered), pipelinedPuts(.durable), pipelinedPuts(.buffered), gets,
      fanOut(listenerCount: 10_000), idle(connectionCount: 10_000),
      idleListens(connectionCount: 10_000), starts(leafCount: 0),
      starts(leafCount: 1_000_000),
    ])

  private static let connectionCount = 64

  private static func name(_ durability: PeerDurability) -> String {
    durability == .durable ? "durable" : "buffered"
  }

  /// - Parameter rules: the text of the security rules; nil lets everybody do everything.
  static func withServer(
    _ turn: Turn, _ durability: PeerDurability = .durable, rules: String? = nil,
    _ body: (ServeProcess) throws -> Measurement
  ) throws -> Measurement {
    var options = ["--sessions", "20000", "--per-address", "20000"]
    if let rules {
      let file = turn.directory.appendingPathExtension("rules.json")
      try Data(rules.utf8).write(to: file)
      options += ["--rules", file.path]
    }
    let server = try ServeProcess(
      at: turn.directory, durability: durability == .durable ? "every-commit" : "interval:1000",
      options: options)
    defer { server.stop() }
    return try body(server)
  }

  /// Ten rules are on the way to a field of a post, and all are evaluated.
  private static let tenRules = """
    {"rules": {
      ".read": true,
      ".write": "auth.token.admin === true",
      ".validate": "newData.hasChildren()",
      "app": {
        ".write": "root.child('app/open').val() === true",
        ".validate": "newData.hasChild('posts')",
        "posts": {
          ".write": "data.child('open').val() === true",
          ".validate": "newData.hasChildren()",
          "$post": {
            ".write": "auth.uid === data.child('owner').val() + '!'",
            ".validate": "$post.length <= 20 && newData.hasChildren()",
            "$field": {
              ".write": "newData.isString() || !newData.exists()",
              ".validate": "newData.val().length > 0 && newData.val().length <= 500"
            }
          }
        }
      }
    }}
    """

  /// Runs a load, and measures it with the server's CPU time.
  private static func measure(
    _ load: RequestLoad, _ count: Int, processor: () throws -> Double
  ) throws -> Measurement {
    let before = try processor()
    var latencies: [Double] = []
    var measurement = try Measurement.blocking(count) { latencies = try load.run(count) }
    measurement.serverProcessorSeconds = try processor() - before
    measurement.addLatencies(latencies)
    return measurement
  }

  // MARK: Puts

  private static let putCount = 64_000

  private static func puts(_ durability: PeerDurability) -> Comparison {
    Comparison(
      "\(name(durability)) puts, \(connectionCount) connections", "puts",
      [
        requestPuts(durability), requestPuts(durability, rules: tenRules),
        redis(durability, connections: connectionCount, putCount),
      ])
  }

  private static func requestPuts(
    _ durability: PeerDurability, rules: String? = nil
  ) -> Contestant {
    Contestant("dendro, REST\(rules == nil ? "" : ", ten rules")") { turn in
      let sets = PostSets(count: turn.scaled(putCount))
      return try withServer(turn, durability, rules: rules) { server in
        let connections = try (0..<connectionCount).map { _ in
          try LoadConnection(port: server.port)
        }
        let request: (Int) -> [UInt8] = {
          HTTPRequest.put("app/" + sets.paths[$0], "\"\(sets.values[$0])\"")
        }
        let answer = try connections[0].call(request(0))
        let load = RequestLoad(
          connections: connections, request: request, answerByteCount: answer.count,
          answerStart: Array("HTTP/1.1 204".utf8))
        let measurement = try measure(load, sets.count) { server.processorSeconds }
        let last = try connections[0].call(HTTPRequest.get("app/" + sets.paths[sets.count - 1]))
        try expect(
          String(decoding: last, as: UTF8.self).hasSuffix("\"\(sets.values[sets.count - 1])\""),
          "the last put shows")
        return measurement
      }
    }
  }

  private static func pipelinedPuts(_ durability: PeerDurability) -> Comparison {
    Comparison(
      "\(name(durability)) puts, 64 in flight on one connection", "puts",
      [
        socketPuts(durability), socketPuts(durability, rules: tenRules),
        redis(durability, connections: 1, putCount),
      ])
  }

  static func socketPuts(
    _ durability: PeerDurability, rules: String? = nil
  ) -> Contestant {
    Contestant("dendro, WebSocket\(rules == nil ? "" : ", ten rules")") { turn in
      let sets = PostSets(count: turn.scaled(putCount))
      return try withServer(turn, durability, rules: rules) { server in
        let connection = try LoadConnection(port: server.port)
        try connection.upgrade()
        let request: (Int, Int) -> [UInt8] = { number, index in
          WireRequestBytes.request(
            number, "p", "{\"p\":\"/app/\(sets.paths[index])\",\"d\":\"\(sets.values[index])\"}")
        }
        let answer = try connection.callWire(request(sets.count, 0))
        let load = RequestLoad(
          connections: [connection], depth: 64, request: { request($0, $0) },
          answerByteCount: answer.count, answerStart: Array(answer.prefix(2)))
        let measurement = try measure(load, sets.count) { server.processorSeconds }
        let last = try connection.callWire(
          WireRequestBytes.request(
            sets.count + 1, "g", "{\"p\":\"/app/\(sets.paths[sets.count - 1])\"}"))
        try expect(
          String(decoding: last, as: UTF8.self).contains(sets.values[sets.count - 1]),
          "the last put shows")
        return measurement
      }
    }
  }

  /// - Parameter connections: with 64 in flight on all together.
  private static func redis(
    _ durability: PeerDurability, connections: Int, _ count: Int
  ) -> Contestant? {
    #if canImport(CDendroRedis)
      .redis("\(connections == 1 ? "pipelined" : "one command at a time")", durability) {
        turn, redis in
        let sets = PostSets(count: turn.scaled(count))
        let load = RequestLoad(
          connections: try redis.loadConnections(connections), depth: 64 / connections,
          request: { RedisRequest.command("SET", sets.paths[$0], sets.values[$0]) },
          answerByteCount: "+OK\r\n".utf8.count, answerStart: Array("+OK".utf8))
        let measurement = try measure(load, sets.count) {
          try redis.connection.serverProcessorSeconds()
        }
        try sets.expectSome(in: redis, sets.entries)
        return measurement
      }
    #else
      nil
    #endif
  }

  // MARK: Gets

  private static let gets = Comparison(
    "gets, \(connectionCount) connections", "gets",
    [
      Contestant("dendro, REST") { turn in
        let count = turn.scaled(128_000)
        return try withServer(turn) { server in
          let connections = try (0..<connectionCount).map { _ in
            try LoadConnection(port: server.port)
          }
          let sets = PostSets(count: 1_000)
          for index in 0..<sets.count {
            _ = try connections[0].call(
              HTTPRequest.put(sets.paths[index], "\"\(sets.values[index])\""))
          }
          let answer = try connections[0].call(HTTPRequest.get(sets.paths[0]))
          let load = RequestLoad(
            connections: connections, request: { HTTPRequest.get(sets.paths[$0 % sets.count]) },
            answerByteCount: answer.count, answerStart: Array("HTTP/1.1 200".utf8))
          return try measure(load, count) { server.processorSeconds }
        }
      },
      redisGets,
    ])

  private static var redisGets: Contestant? {
    #if canImport(CDendroRedis)
      .redis("one command at a time", .buffered) { turn, redis in
        let count = turn.scaled(128_000)
        let sets = PostSets(count: 1_000)
        for index in 0..<sets.count {
          try redis.connection.command("SET", sets.paths[index], sets.values[index])
        }
        let load = RequestLoad(
          connections: try redis.loadConnections(connectionCount),
          request: { RedisRequest.command("GET", sets.paths[$0 % sets.count]) },
          answerByteCount: "$20\r\n\r\n".utf8.count + 20, answerStart: Array("$20".utf8))
        return try measure(load, count) { try redis.connection.serverProcessorSeconds() }
      }
    #else
      nil
    #endif
  }

  // MARK: Listeners

  private static func fanOut(listenerCount: Int) -> Comparison {
    let writeCount = 30
    return Comparison(
      "a write to \(listenerCount.separated) listeners", "deliveries",
      [
        Contestant("dendro, WebSocket") { turn in
          let writeCount = turn.scaled(writeCount)
          return try withServer(turn) { server in
            let connections = try listeners(turn.scaled(listenerCount), server)
            let audience = Audience(connections)
            let writer = try LoadConnection(port: server.port)
            return try deliver(audience, connections.count, writeCount) { number in
              _ = try writer.call(HTTPRequest.put("room", "\(1_000_000 + number)"))
            } processor: {
              server.processorSeconds
            } byteCount: {
              deliveryByteCount
            }
          }
        },
        redisFanOut(listenerCount, writeCount),
      ])
  }

  /// Of the message that says to a WebSocket what the room is.
  static let deliveryByteCount =
    2 + "{\"t\":\"d\",\"d\":{\"a\":\"d\",\"b\":{\"p\":\"room\",\"d\":1000000}}}".utf8.count

  static func listeners(_ count: Int, _ server: ServeProcess) throws -> [LoadConnection] {
    try (0..<count).map { _ in
      let connection = try LoadConnection(port: server.port)
      try connection.upgrade()
      try connection.send(WireRequestBytes.request(1, "q", "{\"p\":\"/room\",\"h\":\"\"}"))
      _ = try connection.receive(upTo: "}}}")
      return connection
    }
  }

  static func deliver(
    _ audience: Audience, _ listenerCount: Int, _ writeCount: Int,
    write: @escaping @Sendable (Int) throws -> Void, processor: () throws -> Double,
    byteCount: () -> Int
  ) throws -> Measurement {
    var latencies: [Double] = []
    let before = try processor()
    var measurement = try Measurement.blocking(writeCount * listenerCount) {
      for number in 0..<writeCount {
        let start = ContinuousClock.now
        // The answer may come after the deliveries.
        let writing = Thread.running { try write(number) }
        latencies += try audience.receive(byteCount(), since: start)
        try writing.join()
      }
    }
    measurement.serverProcessorSeconds = try processor() - before
    measurement.addLatencies(latencies)
    return measurement
  }

  private static func redisFanOut(_ listenerCount: Int, _ writeCount: Int) -> Contestant? {
    #if canImport(CDendroRedis)
      .redis("PUBLISH", .buffered) { turn, redis in
        let connections = try redis.loadConnections(turn.scaled(listenerCount))
        for connection in connections {
          let answer = try connection.call(RedisRequest.command("SUBSCRIBE", "room"))
          try expect(answer.starts(with: Array("*3".utf8)), "a subscriber")
        }
        let publisher = try redis.loadConnections(1)[0]
        return try deliver(Audience(connections), connections.count, turn.scaled(writeCount)) {
          number in
          _ = try publisher.call(RedisRequest.command("PUBLISH", "room", "\(1_000_000 + number)"))
        } processor: {
          try redis.connection.serverProcessorSeconds()
        } byteCount: {
          RedisRequest.command("message", "room", "1000000").count
        }
      }
    #else
      nil
    #endif
  }

  // MARK: Start

  private static func starts(leafCount: Int) -> Comparison {
    let state = leafCount == 0 ? "empty" : "\(leafCount.separated) leaves"
    return Comparison(
      "from the start to the first answer, \(state)", "starts",
      [dendroStart(leafCount), redisStart(leafCount)])
  }

  private static func dendroStart(_ leafCount: Int) -> Contestant {
    Contestant("dendro") { turn in
      try FileManager.default.createDirectory(
        at: turn.directory, withIntermediateDirectories: true)
      if leafCount == 0 { return }
      let inner = Turn(
        directory: turn.directory.appendingPathComponent("default"), isQuick: turn.isQuick)
      try await inner.withDatabase { database in
        try PostSets(count: turn.scaled(leafCount)).write(to: database)
        try await database.checkpoint()
      }
    } measure: { turn in
      try withServer(turn) { server in
        var measurement = Measurement()
        measurement.add("first answer", "ms", server.secondsToFirstAnswer * 1000)
        return measurement
      }
    }
  }

  private static func redisStart(_ leafCount: Int) -> Contestant? {
    #if canImport(CDendroRedis)
      Contestant("redis, snapshot") { turn in
        try FileManager.default.createDirectory(
          at: turn.directory, withIntermediateDirectories: true)
        if leafCount == 0 { return }
        let server = try RedisServer(at: turn.directory, .snapshot)
        defer { server.stop() }
        let connection = try server.connect()
        defer { connection.close() }
        let entries = PostSets(count: turn.scaled(leafCount)).entries
        for index in 0..<entries.count {
          try connection.append(RedisWord.set.bytes, entries.key(index), entries.value(index))
          try connection.drain(to: 1_000)
        }
        try connection.drain()
        try connection.command("SAVE")
      } measure: { turn in
        let start = ContinuousClock.now
        let server = try RedisServer(at: turn.directory, .snapshot)
        defer { server.stop() }
        let connection = try server.connect()
        defer { connection.close() }
        var measurement = Measurement()
        measurement.add("first answer", "ms", (ContinuousClock.now - start) / .milliseconds(1))
        return measurement
      }
    #else
      nil
    #endif
  }
}

#if canImport(CDendroRedis)
  extension Redis {
    /// New connections to the server.
    func loadConnections(_ count: Int) throws -> [LoadConnection] {
      try (0..<count).map { _ in try LoadConnection(path: socket) }
    }
  }
#endif
