import DendroStorage
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

@Suite("A disk that has room again")
struct RoomAgainTests {
  private let disk = SimulatedDisk(seed: 1)

  @Test("the first write after it is admitted", arguments: [false, true])
  func firstWrite(awaits: Bool) async throws {
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    try await engine.write(set("kept", .integer(1)))
    disk.freeSpace = 0
    let large = Node(.string(incompressible(200_000)))
    await #expect(throws: EngineError.self) {
      try await engine.write(Draft(.set(try path("large"), large)))
    }
    // Nothing changes while there is none.
    await #expect(throws: EngineError.self) { try await engine.write(set("small", .integer(1))) }
    disk.freeSpace = nil
    if awaits {
      try await engine.write(set("again", .integer(1)))
    } else {
      let result = await withCheckedContinuation { continuation in
        do {
          engine.submit(try set("again", .integer(1))) { continuation.resume(returning: $0) }
        } catch {
          Issue.record(error)
        }
      }
      #expect(throws: Never.self) { try result.get() }
    }
    #expect(try engine.view(at: path("again")).scalar == .integer(1))
    try await engine.close()
  }

  @Test("what was synchronized when the log was cut back counts as durable")
  func durableAfterTheCut() throws {
    var options = EngineOptions.inline
    options.durability = .none
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    engine.submit(try set("kept", .integer(1)), completion: nil)
    engine.pump()
    #expect(engine.statistics().durableLSN == .zero)
    disk.freeSpace = 0
    engine.submit(try set("large", .string(incompressible(200_000))), completion: nil)
    engine.pump()
    #expect(engine.head.lsn == LogSequenceNumber(1))
    #expect(engine.statistics().durableLSN == LogSequenceNumber(1))
    disk.freeSpace = nil
    try engine.close()
  }

  @Test("the refusal and the return are said once each, and the refusal is counted")
  func events() async throws {
    let events = Received<LogEvent>()
    var options = EngineOptions()
    options.log = { events.add($0) }
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    disk.freeSpace = 0
    let large = Node(.string(incompressible(200_000)))
    for _ in 0..<3 {
      await #expect(throws: EngineError.self) {
        try await engine.write(Draft(.set(try path("large"), large)))
      }
    }
    #expect(engine.statistics().failureCounts == [.diskFull: 1])
    // Room for what looks for room, and none for the write.
    disk.freeSpace = 100_000
    for _ in 0..<3 {
      await #expect(throws: EngineError.self) {
        try await engine.write(Draft(.set(try path("large"), large)))
      }
    }
    disk.freeSpace = nil
    try await engine.write(set("again", .integer(1)))
    #expect(engine.statistics().failureCounts == [.diskFull: 1])
    try await engine.close()
    while events.all.count < 3 { await Task.yield() }
    #expect(events.all.map(\.level) == [.info, .warning, .info])
    #expect(
      events.all.map(\.message) == [
        "a new database was made", "the disk is full: writes are refused until there is room",
        "the disk has room again: writes are taken",
      ])
  }
}
