#if canImport(CDendroRedis)
  import CDendroRedis
  import Foundation

  /// A connection to a Redis server, by hiredis. One thread uses it at a time.
  final class RedisConnection: @unchecked Sendable {
    private let context: UnsafeMutablePointer<redisContext>
    /// Commands that were appended and whose replies were not read.
    private(set) var waitingCount = 0

    init(_ socket: String) throws {
      guard let context = redisConnectUnix(socket) else {
        throw PeerError(peer: "redis", message: "no memory for a connection")
      }
      guard context.pointee.err == 0 else {
        redisFree(context)
        throw PeerError(peer: "redis", message: "cannot connect")
      }
      self.context = context
    }

    func close() { redisFree(context) }

    var fileDescriptor: Int32 { context.pointee.fd }

    // MARK: Commands

    /// Appends a command of one to three words to those that are sent together.
    func append(_ first: Bytes, _ second: Bytes? = nil, _ third: Bytes? = nil) throws {
      let count = second == nil ? 1 : third == nil ? 2 : 3
      try withUnsafeTemporaryAllocation(
        of: UnsafePointer<CChar>?.self, capacity: 3
      ) { words in
        try withUnsafeTemporaryAllocation(of: Int.self, capacity: 3) { counts in
          words.initializeElement(at: 0, to: first.characters)
          words.initializeElement(at: 1, to: second?.characters)
          words.initializeElement(at: 2, to: third?.characters)
          counts.initializeElement(at: 0, to: first.count)
          counts.initializeElement(at: 1, to: second?.count ?? 0)
          counts.initializeElement(at: 2, to: third?.count ?? 0)
          let status = redisAppendCommandArgv(
            context, Int32(count), words.baseAddress, counts.baseAddress)
          guard status == REDIS_OK else { throw failure }
        }
      }
      waitingCount += 1
    }

    /// Reads the next reply; sends what was appended if none has arrived yet.
    func reply(_ body: (UnsafeMutablePointer<redisReply>) throws -> Void = { _ in }) throws {
      var received: UnsafeMutableRawPointer?
      guard redisGetReply(context, &received) == REDIS_OK, let received else { throw failure }
      waitingCount -= 1
      defer { freeReplyObject(received) }
      let reply = received.assumingMemoryBound(to: redisReply.self)
      if reply.pointee.type == REDIS_REPLY_ERROR {
        throw PeerError(peer: "redis", message: String(cString: reply.pointee.str))
      }
      try body(reply)
    }

    /// Reads replies until at most so many are waited for.
    func drain(to count: Int = 0) throws {
      while waitingCount > count { try reply() }
    }

    /// Sends a command, and returns the reply as text.
    @discardableResult
    func command(_ words: String...) throws -> String {
      try append(words: words)
      var answer = ""
      try reply { reply in
        if let content = reply.pointee.str {
          answer = String(
            decoding: Bytes(start: content, count: reply.pointee.len), as: UTF8.self)
        } else {
          answer = String(reply.pointee.integer)
        }
      }
      return answer
    }

    private func append(words: [String]) throws {
      let copies = words.map { strdup($0) }
      defer { for copy in copies { free(copy) } }
      var pointers = copies.map { $0.map { UnsafePointer($0) } }
      let counts = words.map(\.utf8.count)
      guard
        redisAppendCommandArgv(context, Int32(words.count), &pointers, counts) == REDIS_OK
      else { throw failure }
      waitingCount += 1
    }

    /// CPU time of the server so far.
    func serverProcessorSeconds() throws -> Double {
      try command("INFO", "cpu").split(whereSeparator: \.isNewline)
        .filter { $0.hasPrefix("used_cpu_sys:") || $0.hasPrefix("used_cpu_user:") }
        .compactMap { $0.split(separator: ":").last.flatMap { Double($0) } }.reduce(0, +)
    }

    private var failure: PeerError {
      PeerError(peer: "redis", message: "the connection failed (\(context.pointee.err))")
    }
  }

  /// A word of a command, which stays until the process ends.
  struct RedisWord: @unchecked Sendable {
    let bytes: Bytes

    init(_ word: StaticString) {
      bytes = Bytes(start: word.utf8Start, count: word.utf8CodeUnitCount)
    }

    static let set = RedisWord("SET")
    static let get = RedisWord("GET")
    static let increment = RedisWord("INCR")
    static let multi = RedisWord("MULTI")
    static let exec = RedisWord("EXEC")
    static let publish = RedisWord("PUBLISH")
  }
#endif
