import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Testing

@testable import DendroEngine

@Suite("When a checkpoint is due")
struct CheckpointScheduleTests {
  @Test("segments that begin while a checkpoint is written are not covered by it")
  func rolledMeanwhile() throws {
    let disk = HeldDisk()
    let engine = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    engine.submit(try set("before", .string(incompressible(10_000))), completion: nil)
    engine.pump()
    disk.onCreate { path in
      guard path.contains(".checkpoint") else { return }
      do {
        engine.submit(try set("meanwhile", .string(incompressible(50_000))), completion: nil)
        engine.pump()
        try engine.roll()
      } catch {
        Issue.record(error)
      }
    }
    try engine.checkpoint()
    disk.onCreate(nil)
    engine.submit(try set("after", .integer(1)), completion: nil)
    engine.pump()
    let byteCount = engine.statistics().logBytesSinceCheckpoint
    #expect(byteCount > 50_000 && byteCount < 60_000)
    try engine.close()
  }

  @Test("a checkpoint that could not be read and was written again counts as readable")
  func writtenAgain() throws {
    let disk = SimulatedDisk(seed: 1)
    func open() throws -> Engine {
      try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    }
    func checkpoints() -> [String] {
      disk.names(in: "/db").filter { $0.hasSuffix(".checkpoint") }.sorted()
    }
    func write(_ engine: Engine, _ number: Int64) throws {
      engine.submit(try set("k", .integer(number)), completion: nil)
      engine.pump()
      try engine.checkpoint()
    }
    let engine = try open()
    for number in 1...2 { try write(engine, Int64(number)) }
    try engine.close()
    let damaged = try #require(checkpoints().last)
    #expect(disk.flipBit(8 * 70, of: "/db/" + damaged))
    let again = try open()
    #expect(again.report.unreadableCheckpoints.count == 1)
    try again.checkpoint()
    try write(again, 3)
    // The two newest stay: the one that was written again, and the new one.
    #expect(checkpoints().count == 2)
    #expect(checkpoints().first == damaged)
    try again.close()
  }
}
