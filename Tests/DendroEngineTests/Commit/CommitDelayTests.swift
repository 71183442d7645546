import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Testing

/// The commit delay of writes without a completion.
@Suite struct CommitDelayTests {
  /// With an hour to gather, so that whatever is on the disk was taken there for another reason.
  private func open(
    _ disk: SimulatedDisk, _ change: (inout EngineOptions) -> Void = { _ in }
  ) throws -> Engine {
    var options = EngineOptions()
    options.commitDelay = .seconds(3600)
    change(&options)
    return try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  private func submit(_ number: Int, to engine: Engine, _ text: String = "") throws {
    engine.submit(Draft(.set(try path("n/\(number)"), Node(.string(text)))), completion: nil)
  }

  /// Waits until the first `count` writes are durable.
  private func wait(_ engine: Engine, _ count: UInt64) {
    while engine.statistics().durableLSN.rawValue < count { usleep(100) }
  }

  @Test("they go to the disk by themselves")
  func byThemselves() async throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    for number in 1...3 {
      try submit(number, to: engine)
      wait(engine, UInt64(number))
    }
    try await engine.close()
  }

  @Test("they wait together, and the first with a completion ends the delay for all")
  func completion() async throws {
    let engine = try open(SimulatedDisk(seed: 1))
    for number in 1...100 { try submit(number, to: engine) }
    // The thread may have to be woken yet; it has an hour to wait then.
    #expect(engine.statistics().batchCount == 0)
    try await engine.write(Draft(.set(try path("m"), Node(.bool(true)))))
    #expect(engine.statistics().batchCount == 1)
    #expect(engine.statistics().durableLSN.rawValue == 101)
    try await engine.close()
  }

  @Test("a write that changes nothing takes them along too")
  func nothing() async throws {
    let engine = try open(SimulatedDisk(seed: 1))
    try submit(1, to: engine)
    #expect(try await engine.write(Draft(.remove(try path("m")))) == nil)
    #expect(engine.statistics().durableLSN.rawValue == 1)
    try await engine.close()
  }

  @Test("a barrier, a checkpoint and a close take them along", arguments: 0..<3)
  func barriers(kind: Int) async throws {
    let disk = SimulatedDisk(seed: 1)
    let engine = try open(disk)
    for number in 1...10 { try submit(number, to: engine) }
    switch kind {
    case 0: try await engine.synchronize()
    case 1: try await engine.checkpoint()
    default: try await engine.close()
    }
    let after = disk.crashPoint()
    try await engine.close()
    after.forEachState { state in
      do throws(EngineError) {
        let again = try Engine.open(
          at: "/db", options: .inline, environment: after.disk(state).environment)
        #expect(again.head.lsn.rawValue == 10)
      } catch {
        Issue.record("\(state): \(error)")
      }
    }
  }

  @Test("as many bytes as a record has go at once")
  func bytes() async throws {
    let engine = try open(SimulatedDisk(seed: 1))
    let text = incompressible(10_000)
    for number in 1...7 { try submit(number, to: engine, text) }
    wait(engine, 7)
    try await engine.close()
  }

  @Test("a synchronize that an interval asks for takes them along")
  func interval() async throws {
    let engine = try open(SimulatedDisk(seed: 1)) { $0.durability = .interval(.milliseconds(5)) }
    try submit(1, to: engine)
    wait(engine, 1)
    // Something that is to be synchronized already, and something that gathers until that is due.
    try await engine.write(Draft(.set(try path("m"), Node(.bool(true)))))
    try submit(2, to: engine)
    wait(engine, 3)
    try await engine.close()
  }

  @Test("with room for nothing, each write waits until the batch before was taken")
  func noRoom() async throws {
    let engine = try open(SimulatedDisk(seed: 1)) { $0.stallByteLimit = 1 }
    for number in 1...200 { try submit(number, to: engine) }
    // The batch of the last write but one was taken, and may not be acknowledged yet.
    #expect(engine.statistics().batchCount >= 198)
    try await engine.close()
  }
}
