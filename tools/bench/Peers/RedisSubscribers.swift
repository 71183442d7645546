#if canImport(CDendroRedis)
  import CDendroRedis
  import DendroPlatform
  import Foundation

  /// Messages of one length, so that a subscriber can count them by their bytes.
  struct Messages: Sendable {
    let entries: Entries

    init(count: Int) {
      let numbers = (1...count).map { String(10_000_000 + $0) }
      entries = Entries(keys: numbers.map { _ in "" }, values: numbers)
    }

    /// As the server sends one of them to a subscriber.
    func byteCount(channel: String) -> Int {
      let parts = ["message", channel, "10000000"]
      return parts.reduce("*3\r\n".utf8.count) {
        $0 + "$\($1.utf8.count)\r\n\($1)\r\n".utf8.count
      }
    }
  }

  /// Connections that have subscribed to a channel. One thread reads from all of them, and counts bytes
  /// instead of parsing them, in favour of Redis; the last message of each is looked at.
  final class RedisSubscribers: @unchecked Sendable {
    // Unchecked: only the thread that reads uses the connections meanwhile.
    private let connections: [RedisConnection]
    private let channel: String
    private let poll: Int32

    init(_ server: RedisServer, channel: String, _ count: Int) throws {
      self.channel = channel
      connections = try (0..<count).map { _ in
        let connection = try RedisConnection(server.socket)
        try connection.command("SUBSCRIBE", channel)
        return connection
      }
      poll = epoll_create1(0)
      for (index, connection) in connections.enumerated() {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = UInt64(index)
        guard epoll_ctl(poll, EPOLL_CTL_ADD, connection.fileDescriptor, &event) == 0 else {
          throw PeerError(peer: "redis", message: "epoll_ctl failed")
        }
      }
    }

    func close() {
      DendroPlatform.close(poll)
      for connection in connections { connection.close() }
    }

    /// Reads until every subscriber got so many messages.
    ///
    /// - Parameter delivered: called as often as all subscribers together got another message each.
    func read(_ count: Int, of messages: Messages, _ delivered: () -> Void) throws {
      let messageByteCount = messages.byteCount(channel: channel)
      let roundByteCount = messageByteCount * connections.count
      var receivedByteCount = 0
      var roundCount = 0
      var byteCounts = connections.map { _ in 0 }
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
      defer { buffer.deallocate() }
      var events = Array(repeating: epoll_event(), count: 256)
      let ending = messages.entries.value(count - 1)
      var endingCount = 0
      while roundCount < count {
        let eventCount = epoll_wait(poll, &events, Int32(events.count), -1)
        if eventCount < 0, errno == EINTR { continue }
        for event in events.prefix(Int(max(0, eventCount))) {
          let index = Int(event.data.u64)
          let readCount = DendroPlatform.read(
            connections[index].fileDescriptor, buffer.baseAddress, buffer.count)
          guard readCount > 0 else {
            throw PeerError(peer: "redis", message: "a subscriber was cut off")
          }
          byteCounts[index] += readCount
          receivedByteCount += readCount
          if byteCounts[index] == count * messageByteCount, readCount >= ending.count + 2 {
            let last = Bytes(rebasing: buffer[(readCount - ending.count - 2)..<(readCount - 2)])
            if last.elementsEqual(ending) { endingCount += 1 }
          }
        }
        while roundCount < receivedByteCount / roundByteCount {
          roundCount += 1
          delivered()
        }
      }
      try expect(endingCount == connections.count, "every subscriber gets the last message")
    }
  }
#endif
