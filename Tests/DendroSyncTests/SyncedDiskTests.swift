import Dendro
import DendroServer
import DendroTestSupport
import DendroTesting
import DendroTree
import Synchronization
import Testing

@testable import DendroSync

/// What a synced database keeps on a disk that is full, and over losses of power.
@Suite("synced databases: full disks and losses of power")
struct SyncedDiskTests {
  private func synced(_ port: Int, on disk: SimulatedDisk) throws -> Database {
    try DendroSyncTests.synced(port, at: "/db", environment: disk.environment)
  }

  @Test("a full disk refuses writes; what the server says shows, and is kept once there is room")
  func fullDisk() async throws {
    let disk = SimulatedDisk()
    try await serving { origin, server in
      let port = Int(server.port)
      let database = try synced(port, on: disk)
      let viewer = Viewer(database)
      viewer.listen("a", database.reference(withPath: "a"))
      try await database.reference(withPath: "a/x").setValue(1)
      var generator = SeededGenerator(seed: 1)
      // Nothing makes it shorter.
      let long = String(
        (0..<20_000).map { _ in Character(Unicode.Scalar(UInt8(33 + generator.below(90)))) })
      disk.freeSpace = 0
      // Until the room that the log has already is used up.
      var refusal: DatabaseError?
      var last = 0
      for number in 0..<1000 where refusal == nil {
        last = number
        refusal = await failure {
          try await database.reference(withPath: "b/k\(number)").setValue(long)
        }
      }
      #expect(refusal?.code == .diskFull)
      try await origin.reference(withPath: "a/y").setValue(2)
      try await eventually {
        try await database.reference(withPath: "a/y").getData().value as? Int == 2
      }
      #expect(
        try await origin.reference(withPath: "b").getData().childrenCount == UInt(last),
        "what was refused has not reached the server")
      disk.freeSpace = nil
      try await eventually {
        await failure { try await database.reference(withPath: "c").setValue(long) } == nil
      }
      #expect(try await origin.reference(withPath: "c").getData().exists())
      try await database.waitForPendingWrites()
      // Tried again within a second.
      try await eventually {
        return try await kept("a", on: disk, port) == #"{"x":1,"y":2}"#
      }
      try await database.close()
      let later = try synced(port, on: disk)
      later.goOffline()
      #expect(try later.pendingWrites().isEmpty)
      try await later.close()
    }
  }

  /// What is there without a network, as the disk has it now.
  private func kept(_ path: String, on disk: SimulatedDisk, _ port: Int) async throws -> String {
    let database = try synced(port, on: disk.copy())
    database.goOffline()
    let node = try await database.reference(withPath: path).getData().node
    try await database.close()
    return JSONWriter.string(node)
  }

  @Test(
    "whenever the power goes, what is there is a state of the server, and what waits for it is a run without gaps"
  )
  func power() async throws {
    let disk = SimulatedDisk()
    let states = Mutex<Set<String>>(["null"])
    let kept = Mutex<[(point: CrashPoint, last: Int)]>([])
    let port = Mutex(0)
    try await serving { origin, server in
      _ = origin.reference().observe(.value) { snapshot in
        let text = JSONWriter.string(snapshot.node)
        states.withLock { _ = $0.insert(text) }
      }
      port.withLock { $0 = Int(server.port) }
      let database = try synced(Int(server.port), on: disk)
      let viewer = Viewer(database)
      viewer.listen("all", database.reference())
      for number in 1...40 {
        database.reference(withPath: "mine/k\(number % 7)").withoutWaiting { $0.setValue(number) }
        if number % 3 == 0 {
          try await origin.reference(withPath: "theirs/k\(number % 5)").setValue(number)
        }
        if number % 10 == 5 { database.goOffline() }
        if number % 10 == 9 { database.goOnline() }
        if number % 4 == 0 {
          try await database.synchronize()
          kept.withLock { $0.append((disk.crashPoint(), number)) }
        }
      }
      database.goOnline()
      try await database.waitForPendingWrites()
      await origin.waitForPendingEvents()
      try await database.close()
    }
    let (known, place) = (states.value, port.value)
    var checked = 0
    func check(_ crashed: SimulatedDisk, _ name: String, last: Int) async throws {
      // The power may go before the directory is there, or is one of the server's.
      guard crashed.exists("/db"), let database = try? synced(place, on: crashed) else {
        #expect(last == 0, "\(name)")
        return
      }
      checked += 1
      database.goOffline()
      let numbers = try database.pendingWrites().map(\.id)
      if let first = numbers.first {
        #expect(numbers == Array(first..<first + numbers.count), "\(name)")
        #expect((numbers.last ?? 0) >= last, "\(name): a write that was synchronized is lost")
      } else if let node = try? await database.reference().getData().node {
        #expect(known.contains(JSONWriter.string(node)), "\(name)")
      }
      try await database.close()
    }
    let points = disk.crashPoints()
    for index in stride(from: 0, to: points.count, by: max(1, points.count / Scale.scaled(10_000)))
    {
      var generator = SeededGenerator(seed: UInt64(index))
      let point = points[index]
      try await check(
        point.disk(point.randomState(using: &generator)), "crash point \(index)", last: 0)
    }
    for (index, item) in kept.withLock({ $0 }).enumerated() {
      for seed in 0..<4 {
        var generator = SeededGenerator(seed: UInt64(seed))
        let state = item.point.randomState(using: &generator)
        try await check(item.point.disk(state), "sync \(index), \(seed)", last: item.last)
      }
    }
    #expect(checked > 10)
  }
}
