import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

@Suite("Writers that are faster than the disk")
struct BackpressureTests {
  /// The thread of the engine waits for the disk, with one batch of one write.
  private func openBusy(_ disk: HeldDisk, limit: Int) async throws -> Engine {
    var options = EngineOptions()
    options.stallByteLimit = limit
    let engine = try Engine.open(at: "/db", options: options, environment: disk.environment)
    disk.hold(.synchronize)
    engine.submit(try set("first", .integer(1))) { _ in }
    await onThread { disk.waitForCall() }
    return engine
  }

  @Test("large writes of many threads do not all join one batch")
  func largeWrites() async throws {
    let disk = HeldDisk()
    let engine = try await openBusy(disk, limit: 64 << 10)
    let text = incompressible(100_000)
    let done = Received<Int>()
    for number in 0..<5 {
      Thread.detachNewThread {
        engine.submit(Draft(.set(Path(keys: [key("n\(number)")]), Node(.string(text))))) { _ in }
        done.add(number)
      }
    }
    while engine.heldThreadCount < 4 { await Task.yield() }
    #expect(engine.head.root.childCount == 2)
    disk.release()
    while done.all.count < 5 { await Task.yield() }
    #expect(engine.head.root.childCount == 6)
    try await engine.close()
  }

  @Test("writers that wait for the disk are refused once it has failed")
  func refused() async throws {
    let disk = HeldDisk()
    let engine = try await openBusy(disk, limit: 64 << 10)
    let text = incompressible(100_000)
    let refused = Received<Bool>()
    for number in 0..<5 {
      Thread.detachNewThread {
        engine.submit(Draft(.set(Path(keys: [key("n\(number)")]), Node(.string(text))))) {
          if case .failure = $0 { refused.add(true) }
        }
      }
    }
    while engine.heldThreadCount < 4 { await Task.yield() }
    disk.disk.inject(.failedSynchronize(at: 1, pages: .kept))
    disk.release()
    while refused.all.count < 5 { await Task.yield() }
    #expect(engine.head.root.isEmpty && engine.heldThreadCount == 0)
    try? await engine.close()
  }

  @Test("completions count, even those of writes that change nothing")
  func completions() async throws {
    let disk = HeldDisk()
    let engine = try await openBusy(disk, limit: 64 << 10)
    let count = 100_000
    let completed = Atomic<Int>(0)
    let submitted = Received<Bool>()
    let nothing = Draft(.remove(try path("nothing")))
    Thread.detachNewThread {
      for _ in 0..<count {
        engine.submit(nothing) { _ in completed.add(1, ordering: .relaxed) }
      }
      submitted.add(true)
    }
    while engine.heldThreadCount == 0, submitted.all.isEmpty { await Task.yield() }
    #expect(submitted.all.isEmpty)
    disk.release()
    while submitted.all.isEmpty { await Task.yield() }
    try await engine.close()
    #expect(completed.load(ordering: .relaxed) == count)
  }

  @Test(
    "a completion may write more than the limit, since the commit thread does not wait for itself")
  func fromCompletion() async throws {
    var options = EngineOptions()
    options.stallByteLimit = 1
    let engine = try Engine.open(
      at: "/db", options: options, environment: SimulatedDisk(seed: 1).environment)
    let done = Received<Int>()
    engine.submit(try set("first", .integer(1))) { _ in
      for number in 0..<10 {
        engine.submit(Draft(.set(Path(keys: [key("n\(number)")]), Node(.integer(1))))) { _ in
          done.add(number)
        }
      }
    }
    while done.all.count < 10 { await Task.yield() }
    #expect(done.all == Array(0..<10))
    try await engine.close()
  }

  @Test("the memory that a burst has taken is given back")
  func burst() async throws {
    let disk = HeldDisk()
    let engine = try await openBusy(disk, limit: 64 << 20)
    let nothing = Draft(.remove(try path("nothing")))
    for _ in 0..<100_000 { engine.submit(nothing) { _ in } }
    disk.release()
    try await engine.synchronize()
    try await engine.synchronize()
    // While a thread has the turn it has the batch as well.
    while engine.pipeline.withAdmission({ $0.spare == nil }) { await Task.yield() }
    let capacities = engine.pipeline.withAdmission { admission in
      var capacities = [
        admission.batch.completions.capacity, admission.batch.undo.unreported.capacity,
        admission.inFlight.unreported.capacity,
      ]
      switch admission.spare {
      case .some(let spare):
        capacities += [spare.completions.capacity, spare.undo.unreported.capacity]
      case nil: Issue.record("the turn's batch is not there")
      }
      return capacities
    }
    #expect(capacities.allSatisfy { $0 <= 1 << 14 })
    try await engine.close()
  }
}

private func key(_ string: String) -> Key {
  do {
    return try Key(string)
  } catch {
    preconditionFailure("\(error)")
  }
}
