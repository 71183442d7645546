import DendroStorage
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

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

  @Test("closing tells that the disk refused the batch before its own")
  func refusedBatchBefore() async throws {
    let disk = HeldDisk()
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    try await engine.write(set("kept", .integer(1)))
    disk.hold(.write)
    engine.submit(try set("lost", .string(incompressible(1 << 20))), completion: nil)
    await onThread { disk.waitForCall() }
    // This one gathers behind it, and so does the end.
    engine.submit(try set("behind", .integer(2)), completion: nil)
    let closing = Task { try await engine.close() }
    func isClosing() -> Bool {
      if case .closing = engine.pipeline.admission.withLock({ $0.phase }) { return true }
      return false
    }
    while !isClosing() { await Task.yield() }
    disk.disk.inject(DiskFault(.error(28), at: 1))
    disk.release()
    await #expect(throws: EngineError.self) { try await closing.value }
    let again = try Engine.open(at: "/db", options: .inline, environment: disk.disk.environment)
    #expect(again.head.root.childCount == 1)
    try await again.close()
  }

  private func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        body()
        continuation.resume()
      }
    }
  }
}
