import Dendro
import DendroPlatform
import DendroSync
import Dispatch
import Foundation
import Synchronization

extension Workload {
  static let synced = Workload(
    "synced", row: "synced",
    """
    A synced database and dendro serve, each a process of its own: a set until its listener has it, puts one after the \
    other and with 64 in flight, the memory of listens, connecting again, an answer with more and more writes pending, \
    opening with 1 million leaves cached, and 100,000 writes that were made offline, beside clients that send frames which \
    they have ready, and beside pyrebase4.
    """,
    [
      Comparison(
        "a set until its listener has it", "sets",
        [
          localSets("dendro, embedded in memory") { _, _ in Database.inMemory() },
          localSets("dendro, synced in memory") { server, _ in try .synced(server) },
          localSets("dendro, synced in a directory") { server, turn in
            try await .synced(server, at: turn)
          },
        ]),
      Comparison(
        "a set until its listener has it, beside pyrebase4", "sets",
        [
          localSets("dendro, synced in memory", count: 10_000) { server, _ in
            try .synced(server)
          },
          Pyrebase.contestant(.sets, count: 2_000),
        ]),
      Comparison(
        "puts, one after the other", "puts",
        [
          sequentialPuts("dendro, synced in memory") { server, _ in try .synced(server) },
          sequentialPuts("dendro, synced in a directory") { server, turn in
            try await .synced(server, at: turn)
          },
          Pyrebase.contestant(.puts, count: 2_000),
        ]),
      Comparison(
        "puts, 64 in flight on one connection", "puts",
        [
          Workload.socketPuts(.durable),
          syncedPuts("dendro, synced in memory") { server, _ in try .synced(server) },
          syncedPuts("dendro, synced in a directory") { server, turn in
            try await .synced(server, at: turn)
          },
        ]),
      Comparison("10,000 listens", "listens", [listens]),
      Comparison(
        "connecting again", "listens",
        [
          connectingAgain("dendro, 1,000 listens of which nothing has changed", listenCount: 1_000),
          connectingAgain(
            "dendro, 100,000 children of which 10 have changed", childCount: 100_000,
            changeCount: 10),
          connectingAgain(
            "dendro, 100,000 children of which all have changed", childCount: 100_000,
            changeCount: 100_000),
        ]),
      Comparison(
        "an answer", "answers",
        [10, 1_000, 100_000].map { answers(pendingCount: $0) }),
      openingOfCached,
      draining,
    ])

  // MARK: Latency

  private typealias Opening = @Sendable (ServeProcess, Turn) async throws -> Database

  private static func localSets(
    _ name: String, count: Int = 40_000, _ open: @escaping Opening
  ) -> Contestant {
    Contestant(name) { turn in
      try await serving(turn) { server in
        let count = turn.scaled(count)
        let database = try await open(server, turn)
        let ref = database.reference(withPath: "n")
        let came = DispatchSemaphore(value: 0)
        ref.observe(.value) { _ in came.signal() }
        try await settle(database)
        var latencies: [Double] = []
        drain(came)
        var measurement = try Measurement.blocking(count) {
          for index in 1...count {
            let start = ContinuousClock.now
            ref.setValue(index) { _, _ in }
            came.wait()
            latencies.append((ContinuousClock.now - start) / .seconds(1))
          }
        }
        measurement.addLatencies(latencies)
        try await database.waitForPendingWrites()
        try expect(try await ref.getData().int == count, "the last set is there")
        try await database.close()
        return measurement
      }
    }
  }

  // MARK: Puts

  private static func syncedPuts(_ name: String, _ open: @escaping Opening) -> Contestant {
    Contestant(name) { turn in
      let sets = PostSets(count: turn.scaled(64_000))
      return try await serving(turn) { server in
        let database = try await open(server, turn)
        let app = database.reference(withPath: "app")
        try await settle(database)
        let before = server.processorSeconds
        var measurement = try Measurement.blocking(sets.count) {
          let places = DispatchSemaphore(value: 64)
          for index in 0..<sets.count {
            places.wait()
            app.child(sets.paths[index]).setValue(sets.values[index]) { _, _ in places.signal() }
          }
          for _ in 0..<64 { places.wait() }
          for _ in 0..<64 { places.signal() }
        }
        measurement.serverProcessorSeconds = server.processorSeconds - before
        let last = try await app.child(sets.paths[sets.count - 1]).getData()
        try expect(last.string == sets.values[sets.count - 1], "the last put is there")
        try await database.close()
        return measurement
      }
    }
  }

  private static func sequentialPuts(_ name: String, _ open: @escaping Opening) -> Contestant {
    Contestant(name) { turn in
      let sets = PostSets(count: turn.scaled(10_000))
      return try await serving(turn) { server in
        let database = try await open(server, turn)
        let app = database.reference(withPath: "app")
        try await settle(database)
        let before = server.processorSeconds
        var measurement = try await Measurement.awaiting(sets.count) {
          for index in 0..<sets.count {
            try await app.child(sets.paths[index]).setValue(sets.values[index])
          }
        }
        measurement.serverProcessorSeconds = server.processorSeconds - before
        let last = try await app.child(sets.paths[sets.count - 1]).getData()
        try expect(last.string == sets.values[sets.count - 1], "the last put is there")
        try await database.close()
        return measurement
      }
    }
  }

  // MARK: Listens

  private static let listens = Contestant("dendro, synced in memory") { turn in
    let count = turn.scaled(10_000)
    return try await serving(turn) { server in
      let database = try Database.synced(server)
      try await settle(database)
      let came = DispatchSemaphore(value: 0)
      let before = residentByteCount()
      var measurement = try Measurement.blocking(count) {
        for index in 0..<count {
          database.reference(withPath: "p\(index)").observe(.value) { _ in came.signal() }
        }
        for _ in 0..<count { came.wait() }
      }
      measurement.add(
        "memory of a listen", "bytes", Double(residentByteCount() - before) / Double(count))
      try await database.close()
      return measurement
    }
  }

  private static func connectingAgain(
    _ name: String, listenCount: Int = 1, childCount: Int = 100, changeCount: Int = 0
  ) -> Contestant {
    Contestant(name) { turn in
      let listenCount = turn.scaled(listenCount)
      let childCount = childCount > 100 ? turn.scaled(childCount) : childCount
      return try await serving(turn) { server in
        // An object of its own: those of one URL are the same.
        let writer = try await Database.synced(server, at: turn)
        let children = Dictionary(
          uniqueKeysWithValues: (0..<childCount).map { ("child\($0)", "the value of \($0)") })
        for index in 0..<listenCount {
          try await writer.reference(withPath: "p\(index)").setValue(children)
        }
        let reader = try Database.synced(server)
        let came = DispatchSemaphore(value: 0)
        for index in 0..<listenCount {
          reader.reference(withPath: "p\(index)").observe(.value) { _ in came.signal() }
        }
        wait(came, listenCount)
        // With the answers to the listens it learns from which write on the server is to tell.
        try await settle(reader)
        reader.goOffline()
        try await SocketBytes.waitForOneConnection(to: server.port)
        if changeCount >= childCount {
          try await writer.reference(withPath: "p0").setValue(children.mapValues { $0 + "!" })
        } else if changeCount > 0 {
          var changes: [String: String] = [:]
          for index in 0..<changeCount {
            changes["child\(index * childCount / changeCount)"] = "another value"
          }
          try await writer.reference(withPath: "p0").updateChildValues(changes)
        }
        let before = server.processorSeconds
        let otherBytes = SocketBytes.all(ofConnectionsTo: server.port)
        let bytes = Mutex(0)
        var measurement = try await Measurement.awaiting(listenCount) {
          reader.goOnline()
          // It is answered behind the listens.
          try await reader.reference(withPath: "end").setValue(true)
          bytes.withLock { $0 = SocketBytes.all(ofConnectionsTo: server.port) - otherBytes }
        }
        measurement.serverProcessorSeconds = server.processorSeconds - before
        measurement.add("time", "ms", measurement.cost.seconds * 1e3)
        measurement.add("bytes of the connection", "KB", Double(bytes.withLock { $0 }) / 1e3)
        let last = try await reader.reference(withPath: "p0").getData()
        try expect(Int(last.childrenCount) == childCount, "all children are there")
        try await reader.close()
        try await writer.close()
        return measurement
      }
    }
  }

  // MARK: Answers

  private static func answers(pendingCount: Int) -> Contestant {
    Contestant("dendro, \(pendingCount) pending") { turn in
      let count = turn.scaled(50_000)
      let pendingCount = pendingCount > 1_000 ? turn.scaled(pendingCount) : pendingCount
      return try await serving(turn, durability: "interval:1000") { server in
        let database = try Database.synced(server)
        database.goOffline()
        let app = database.reference(withPath: "app")
        app.child("k0").observe(.value) { _ in }
        let places = DispatchSemaphore(value: 0)
        let write = { (index: Int) in
          app.child("k\(index % 5_000)").setValue(index) { _, _ in places.signal() }
        }
        for index in 0..<pendingCount { write(index) }
        database.goOnline()
        // So many are pending at any time.
        let next = { (index: Int) in
          places.wait()
          write(index)
        }
        // What was written offline is sent at once: not among what is measured, which is one write and one answer.
        for index in pendingCount..<2 * pendingCount { next(index) }
        let measurement = try Measurement.blocking(count) {
          for index in 0..<count { next(2 * pendingCount + index) }
        }
        try await database.waitForPendingWrites()
        try await database.close()
        return measurement.adding(
          "CPU time", "µs", measurement.cost.processorSeconds / Double(count) * 1e6)
      }
    }
  }

  // MARK: Parts

  static func serving<R>(
    _ turn: Turn, durability: String = "every-commit",
    _ body: (ServeProcess) async throws -> R
  ) async throws -> R {
    let server = try ServeProcess(at: turn.directory, durability: durability)
    defer { server.stop() }
    return try await body(server)
  }

  /// Waits until the connection is there, and what came before is done.
  static func settle(_ database: Database) async throws {
    try await database.reference(withPath: "settled").setValue(true)
    await database.waitForPendingEvents()
  }

  private static func drain(_ semaphore: DispatchSemaphore) {
    while semaphore.wait(timeout: .now()) == .success {}
  }

  static func wait(_ semaphore: DispatchSemaphore, _ count: Int) {
    for _ in 0..<count { semaphore.wait() }
  }
}

extension Database {
  /// One in memory that keeps in step with a server, with callbacks on a queue of its own.
  static func synced(_ server: ServeProcess) throws -> Database {
    DendroSync.enable()
    let database = Database.database(url: "http://127.0.0.1:\(server.port)")
    database.callbackQueue = DispatchQueue(label: "callbacks")
    return database
  }

  static func synced(_ server: ServeProcess, at turn: Turn) async throws -> Database {
    DendroSync.enable()
    return try await Database.open(
      at: "\(turn.directory.path).client.\(getpid())",
      syncingWith: "http://127.0.0.1:\(server.port)")
  }
}

/// How many bytes have gone over the sockets of this process.
enum SocketBytes {
  /// Those of the connections to a port of this machine, both ways.
  static func all(ofConnectionsTo port: UInt16) -> Int {
    descriptors.reduce(0) { $0 + (byteCount($1, port) ?? 0) }
  }

  /// Waits until all connections but one have been closed: their bytes do not count any more.
  static func waitForOneConnection(to port: UInt16) async throws {
    let end = ContinuousClock.now + .seconds(30)
    while connectionCount(to: port) > 1 {
      try expect(.now < end, "the other connections are closed")
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  private static func connectionCount(to port: UInt16) -> Int {
    descriptors.count { byteCount($0, port) != nil }
  }

  private static var descriptors: [Int32] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap { Int32($0) }
  }

  /// Nil if it is no connection to this port.
  private static func byteCount(_ descriptor: Int32, _ port: UInt16) -> Int? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getpeername(descriptor, $0, &length) == 0
      }
    }
    guard isConnected, address.sin_port.bigEndian == port else { return nil }
    var info = [UInt8](repeating: 0, count: 256)
    var count = socklen_t(info.count)
    guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &count) == 0
    else { return nil }
    // `tcpi_bytes_acked` and `tcpi_bytes_received` of Linux' `struct tcp_info`.
    return info.withUnsafeBytes { bytes in
      [120, 128].reduce(0) { $0 + Int(bytes.load(fromByteOffset: $1, as: UInt64.self)) }
    }
  }
}
