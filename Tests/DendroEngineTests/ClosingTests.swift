import DendroStorage
import DendroTestSupport
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
      let received = Received<Bool>()
      first.submit(try set("c", .integer(1))) { if case .failure = $0 { received.add(true) } }
      first.pump()
      #expect(received.all == [true])
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

  @Test("closing throws when the disk refused")
  func refusedWhileClosing() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    #expect(throws: EngineError.self) { try engine.close() }
    try open().close()
  }

  @Test("closing throws when a synchronize has failed before")
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

  @Test("closing throws when the disk refused the batch before its own")
  func refusedBatchBefore() async throws {
    let disk = HeldDisk()
    let first = try Engine.open(at: "/db", environment: disk.environment)
    try await first.write(set("kept", .integer(1)))
    try await first.close()
    // Reopened, so that no idle record is due.
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    disk.hold(.write)
    engine.submit(try set("lost", .string(incompressible(1 << 20))), completion: nil)
    await onThread { disk.waitForCall() }
    // This one gathers behind it, and so does the end.
    engine.submit(try set("behind", .integer(2)), completion: nil)
    let closing = Task { try await engine.close() }
    func isClosing() -> Bool {
      if case .closing = engine.pipeline.withAdmission({ $0.phase }) { return true }
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

  @Test("a second close returns once the directory is free, not before")
  func closedTwice() async throws {
    let disk = HeldDisk()
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    engine.submit(try set("a", .integer(1)), completion: nil)
    disk.hold(.synchronize)
    let first = Task { try await engine.close() }
    await onThread { disk.waitForCall() }
    let isSecondDone = Received<Bool>()
    let second = Task {
      try await engine.close()
      isSecondDone.add(true)
    }
    while engine.closeWaiterCount == 0, isSecondDone.all.isEmpty { await Task.yield() }
    #expect(isSecondDone.all.isEmpty)
    disk.release()
    try await second.value
    let again = try Engine.open(at: "/db", options: .inline, environment: disk.environment)
    try await again.close()
    try await first.value
  }

  @Test("an engine that was released is closed before the same directory opens again")
  func released() async throws {
    let disk = HeldDisk()
    let environment = disk.environment
    func release() async throws {
      let engine = try Engine.open(at: "/db", environment: environment)
      try await engine.write(set("a", .integer(1)))
      disk.hold(.synchronize)
      engine.submit(try set("b", .integer(1)), completion: nil)
    }
    try await release()
    await onThread { disk.waitForCall() }
    // A task that has ended may keep its reference for a moment.
    while EngineClosings.count == 0 { await Task.yield() }
    let opened = Received<Result<LogSequenceNumber, EngineError>>()
    Thread.detachNewThread {
      opened.add(
        Result { () throws(EngineError) in
          let again = try Engine.open(at: "/db", environment: environment)
          let lsn = again.head.lsn
          try again.close()
          return lsn
        })
    }
    while EngineClosings.waiterCount == 0, opened.all.isEmpty { await Task.yield() }
    #expect(opened.all.isEmpty)
    disk.release()
    while opened.all.isEmpty { await Task.yield() }
    #expect(opened.all == [.success(LogSequenceNumber(2))])
  }
}
