import DendroPlatform
import Foundation
import Synchronization

/// What Redis does in the workload of listeners: it publishes to subscribers, and keeps nothing.
enum PeerListeners {
  #if canImport(CDendroRedis)
    private static let channel = RedisWord("rooms/1/message")

    static func delivery(_ listenerCount: Int, _ writeCount: Int) -> Contestant? {
      Contestant("redis, \(listenerCount.separated) subscriber\(listenerCount == 1 ? "" : "s")") {
        turn in
        let writeCount = turn.scaled(writeCount)
        return try withRedis(turn, listenerCount) { publisher, subscribers in
          let places = DispatchSemaphore(value: Workload.writesAhead)
          let messages = Messages(count: writeCount)
          return try measure(publisher, writeCount * listenerCount) {
            let reading = Thread.running {
              try subscribers.read(writeCount, of: messages) { places.signal() }
            }
            for number in 0..<writeCount {
              // What was appended is sent before this thread waits.
              if places.wait(timeout: .now()) == .timedOut {
                try publisher.drain()
                places.wait()
              }
              try publisher.append(
                RedisWord.publish.bytes, channel.bytes, messages.entries.value(number))
            }
            try publisher.drain()
            try reading.join()
            for _ in 0..<Workload.writesAhead { places.signal() }
          }
        }
      }
    }

    static var oneByOne: Contestant? {
      Contestant("redis, 1 subscriber") { turn in
        let writeCount = turn.scaled(40_000)
        return try withRedis(turn, 1) { publisher, subscribers in
          let latencies = Latencies(writeCount)
          let starts = Mutex(ContinuousClock.now)
          let arrivedCount = Atomic<Int>(0)
          let arrived = DispatchSemaphore(value: 0)
          let messages = Messages(count: writeCount)
          var measurement = try measure(publisher, writeCount) {
            let reading = Thread.running {
              try subscribers.read(writeCount, of: messages) {
                let number = arrivedCount.add(1, ordering: .relaxed).oldValue
                latencies.record(number, since: starts.withLock { $0 })
                arrived.signal()
              }
            }
            for number in 0..<writeCount {
              starts.withLock { $0 = .now }
              try publisher.append(
                RedisWord.publish.bytes, channel.bytes, messages.entries.value(number))
              try publisher.reply()
              arrived.wait()
            }
            try reading.join()
          }
          try expect(!latencies.all.contains(0), "every message is delivered")
          measurement.addLatencies(latencies.all)
          return measurement
        }
      }
    }

    private static func withRedis(
      _ turn: Turn, _ subscriberCount: Int,
      _ body: (RedisConnection, RedisSubscribers) throws -> Measurement
    ) throws -> Measurement {
      try FileManager.default.createDirectory(at: turn.directory, withIntermediateDirectories: true)
      let server = try RedisServer(at: turn.directory, .none)
      defer { server.stop() }
      let publisher = try server.connect()
      defer { publisher.close() }
      let subscribers = try RedisSubscribers(server, channel: "rooms/1/message", subscriberCount)
      defer { subscribers.close() }
      return try body(publisher, subscribers)
    }

    private static func measure(
      _ publisher: RedisConnection, _ count: Int, _ body: () throws -> Void
    ) throws -> Measurement {
      let before = try publisher.serverProcessorSeconds()
      let meter = Cost.Meter()
      try body()
      var measurement = Measurement(count: count, cost: meter.stop())
      measurement.serverProcessorSeconds = try publisher.serverProcessorSeconds() - before
      return measurement
    }
  #else
    static func delivery(_ listenerCount: Int, _ writeCount: Int) -> Contestant? { nil }
    static var oneByOne: Contestant? { nil }
  #endif
}
