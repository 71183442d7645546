import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

/// A caller who waits for the disk has the turn itself, while the commit thread does not.
@Suite("Callers that lead")
struct LeadingCallerTests {
  /// An engine whose commit thread sleeps in an hour's commit delay, with one write in the open batch.
  private static func openDelaying(_ environment: Environment) throws -> Engine {
    var options = EngineOptions()
    options.commitDelay = .seconds(3600)
    let engine = try Engine.open(at: "/db", options: options, environment: environment)
    engine.submit(try set("a", .integer(1)), completion: nil)
    while engine.pipeline.withAdmission({ $0.schedule.state }) != .delaying { usleep(100) }
    return engine
  }

  /// Runs `body` while a caller leads and waits for the disk.
  private static func whileLeading(
    _ body: (Engine, HeldDisk) async throws -> Void
  ) async throws -> Result<Void, EngineError> {
    let disk = HeldDisk()
    let engine = try openDelaying(disk.environment)
    disk.hold(.synchronize)
    let caller = Atomic<UInt>(0)
    async let result = onThread { () -> Result<Void, EngineError> in
      caller.store(BlockingExecutor.currentThreadID, ordering: .relaxed)
      return Result { () throws(EngineError) in try engine.synchronize() }
    }
    await onThread { disk.waitForCall() }
    let committer = engine.pipeline.withAdmission { $0.schedule.state }
    let threadID = caller.load(ordering: .relaxed)
    #expect(committer == .committing(threadID))
    try await body(engine, disk)
    return await result
  }

  @Test("it makes its writes durable on its own thread")
  func ownThread() async throws {
    let result = try await Self.whileLeading { engine, disk in
      #expect(engine.statistics().durableLSN == .zero)
      disk.release()
    }
    try result.get()
  }

  @Test("writes that come meanwhile are committed in the next turn")
  func followers() async throws {
    let answers = Received<LogSequenceNumber?>()
    let synchronized = Received<Bool>()
    let result = try await Self.whileLeading { engine, disk in
      engine.submit(try set("b", .integer(2))) { answers.add(try? $0.get()) }
      for _ in 0..<3 {
        Thread.detachNewThread { synchronized.add((try? engine.synchronize()) != nil) }
      }
      async let written = engine.write(set("c", .integer(3)))
      disk.release()
      let lsn = try await written
      #expect(lsn != nil)
      while synchronized.all.count < 3 || answers.all.isEmpty { await Task.yield() }
      #expect(synchronized.all == [true, true, true] && answers.all == [LogSequenceNumber(2)])
      try await engine.close()
    }
    try result.get()
  }

  @Test("a close that comes meanwhile ends the engine behind it")
  func closing() async throws {
    let result = try await Self.whileLeading { engine, disk in
      async let closed: Void = engine.close()
      while true {
        if case .closing = engine.pipeline.withAdmission({ $0.phase }) { break }
        await Task.yield()
      }
      disk.release()
      try await closed
      #expect(throws: EngineError.closed) { try engine.synchronize() }
    }
    try result.get()
  }

  @Test("a caller that leads may close the engine for another one")
  func closes() async throws {
    // Either thread may take the batch that contains the close; the commit thread ends in both cases.
    for seed in 1...20 as ClosedRange<UInt64> {
      let disk = SimulatedDisk(seed: seed)
      var options = EngineOptions()
      options.durability = .none
      let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
      async let caller: Void = onThread {
        for number in 0..<50 {
          guard let draft = try? set("n\(number)", .integer(1)) else { return }
          engine.submit(draft, completion: nil)
          if (try? engine.synchronize()) == nil { return }
        }
      }
      if seed % 2 == 0 { await Task.yield() }
      try await engine.close()
      await caller
      let again = try Engine.open(at: "/db", environment: disk.environment)
      try await again.close()
    }
  }

  @Test("a disk that refuses its batch refuses its call, and the writes are undone")
  func refused() throws {
    let disk = SimulatedDisk(seed: 3)
    let engine = try Self.openDelaying(disk.environment)
    disk.inject(.failedSynchronize(at: 1, pages: .kept))
    #expect(throws: EngineError.self) { try engine.synchronize() }
    #expect(engine.head.root.isEmpty)
    #expect(throws: EngineError.self) { try engine.synchronize() }
    #expect(throws: EngineError.self) { try engine.close() }
  }

  @Test(
    "many threads that write and wait: each finds its writes durable",
    arguments: [Durability.everyCommit, .none, .interval(.milliseconds(5))])
  func manyCallers(durability: Durability) async throws {
    let disk = SimulatedDisk(seed: 4)
    var options = EngineOptions()
    options.durability = durability
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    let problems = Received<String>()
    await withTaskGroup { group in
      for caller in 0..<8 {
        group.addTask {
          await onThread {
            for number in 0..<100 {
              guard let draft = try? set("c\(caller)/n\(number)", .integer(1)) else { return }
              engine.submit(draft, completion: nil)
              let admitted = engine.head.lsn
              do throws(EngineError) {
                try engine.synchronize()
              } catch {
                problems.add("\(error)")
              }
              if engine.statistics().durableLSN < admitted { problems.add("not durable") }
            }
          }
        }
      }
    }
    #expect(problems.all.isEmpty)
    #expect(engine.head.lsn == LogSequenceNumber(800))
    // A write without a completion is committed too.
    engine.submit(try set("last", .integer(1)), completion: nil)
    while engine.pipeline.withAdmission({ $0.acknowledgedLSN }) < LogSequenceNumber(801) {
      await Task.yield()
    }
    try await engine.close()
  }

  @Test(
    "after a caller has led, a write without a completion is delayed once, within the interval"
  )
  func delayAfterLead() throws {
    var options = EngineOptions()
    options.commitDelay = .seconds(10)
    options.durability = .interval(.milliseconds(100))
    let engine = try Engine.open(
      at: "/db", options: options, environment: SimulatedDisk(seed: 8).environment)
    // The engine's thread may take a write before the caller does.
    var hasLed = false
    for number in 0..<Int64(1_000) where !hasLed {
      engine.submit(try set("a", .integer(number)), completion: nil)
      try engine.synchronize()
      // The next look takes what is there by then.
      hasLed = engine.pipeline.withAdmission { $0.schedule.state } == .delaying
    }
    #expect(hasLed)
    engine.submit(try set("b", .integer(1)), completion: nil)
    while engine.statistics().durableLSN < engine.head.lsn { usleep(1_000) }
    try engine.close()
  }
}
