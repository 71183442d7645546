#if canImport(CDendroRedis)
  import CDendroRedis
  import Foundation

  /// A Redis server with an append-only file, and a connection to it. If writes are buffered the file is
  /// synchronized every second, and if they are durable before every reply.
  final class Redis: Peer {
    let connection: RedisConnection
    private let server: RedisServer

    /// The path of the server's socket.
    var socket: String { server.socket }

    init(at directory: URL, _ durability: PeerDurability) throws {
      server = try RedisServer(at: directory, .appendOnly(durability))
      do {
        connection = try server.connect()
      } catch {
        server.stop()
        throw error
      }
    }

    func close() {
      connection.close()
      server.stop()
    }

    func put(_ key: Bytes, _ value: Bytes) throws {
      try connection.append(RedisWord.set.bytes, key, value)
      try connection.reply()
    }

    func get(_ key: Bytes, _ body: (Bytes?) -> Void) throws {
      try connection.append(RedisWord.get.bytes, key)
      try connection.reply { reply in
        body(reply.pointee.str.map { Bytes(start: $0, count: reply.pointee.len) })
      }
    }

    func batch(_ body: ((Bytes, Bytes) throws -> Void) throws -> Void) throws {
      try connection.append(RedisWord.multi.bytes)
      try body { try connection.append(RedisWord.set.bytes, $0, $1) }
      try connection.append(RedisWord.exec.bytes)
      try connection.drain()
    }

    /// A write that is synchronized before its reply makes those before it durable.
    func synchronize() throws {
      try connection.command("CONFIG", "SET", "appendfsync", "always")
      try connection.command("SET", "synchronized", "1")
      try connection.command("CONFIG", "SET", "appendfsync", "everysec")
    }

    func serverProcessorSeconds() throws -> Double? { try connection.serverProcessorSeconds() }
  }

  extension Contestant {
    /// A contestant that uses Redis' connection itself.
    static func redis(
      _ details: String? = nil, _ durability: PeerDurability = .buffered,
      measure: @escaping @Sendable (Turn, Redis) throws -> Measurement
    ) -> Contestant {
      Contestant(PeerKind.redis.name(details)) { turn in
        try FileManager.default.createDirectory(
          at: turn.directory, withIntermediateDirectories: true)
        let redis = try Redis(at: turn.directory, durability)
        defer { redis.close() }
        return try measure(turn, redis)
      }
    }
  }
#endif
