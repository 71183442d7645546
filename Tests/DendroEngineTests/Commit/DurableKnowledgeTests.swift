import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@Suite("What is known to be durable")
struct DurableKnowledgeTests {
  @Test("a refused batch that is cut back makes those before it durable, and says so")
  func cutBack() throws {
    let disk = SimulatedDisk(seed: 1)
    var options = EngineOptions.inline
    options.durability = .none
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    #expect(engine.statistics().durableLSN == .zero)
    disk.freeSpace = 0
    engine.submit(try set("b", .string(incompressible(100_000))), completion: nil)
    engine.pump()
    #expect(engine.head.lsn == LogSequenceNumber(1))
    #expect(engine.statistics().durableLSN == LogSequenceNumber(1))
    disk.freeSpace = nil
    try engine.close()
  }
}
