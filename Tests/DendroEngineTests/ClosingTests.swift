import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

@Suite("The end of an engine")
struct ClosingTests {
  let disk = SimulatedDisk(seed: 1)

  private func open(_ options: EngineOptions = .inline) throws -> Engine {
    try Engine.open(at: "/db", options: options, environment: disk.environment)
  }

  @Test(
    "one whose lock was taken away leaves the next one's records alone", arguments: [false, true])
  func displaced(writesOnce: Bool) throws {
    let first = try open()
    first.submit(try set("a", .integer(1)), completion: nil)
    first.pump()
    disk.erase("/db/dendro.lock")
    let second = try open()
    for i in 0..<20 { second.submit(try set("b\(i)", .integer(1)), completion: nil) }
    second.pump()
    let root = second.head.root
    if writesOnce {
      let told = Told<Bool>()
      first.submit(try set("c", .integer(1))) { if case .failure = $0 { told.add(true) } }
      first.pump()
      #expect(told.all == [true])
    }
    try? first.close()
    second.submit(try set("d", .integer(1)), completion: nil)
    try second.close()
    let third = try open()
    #expect(third.head.lsn == LogSequenceNumber(22))
    third.submit(Draft(.remove(try path("d"))), completion: nil)
    #expect(third.head.root == root)
    try third.close()
  }

  @Test("closing tells that the disk refused")
  func refusedWhileClosing() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    #expect(throws: EngineError.self) { try engine.close() }
    try open().close()
  }

  @Test("closing tells that a synchronize failed before")
  func refusedBefore() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    engine.pump()
    #expect(throws: EngineError.self) { try engine.close() }
  }

  @Test("who asks for a checkpoint while the engine is closed gets an answer")
  func checkpointsAndClose() async throws {
    for round in 0..<50 {
      let engine = try Engine.open(at: "/db", environment: disk.environment)
      try await engine.write(set("a/\(round)", .integer(1)))
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { try? await engine.checkpoint() } }
        group.addTask { try? await engine.close() }
        for _ in 0..<4 { group.addTask { try? await engine.checkpoint() } }
      }
    }
    let engine = try open()
    #expect(engine.head.root.child(try Key("a")).childCount == 50)
    try await engine.close()
  }
}
