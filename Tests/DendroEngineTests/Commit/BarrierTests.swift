import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Foundation
import Testing

@testable import DendroEngine

/// Callers that block until a batch is durable share one barrier.
@Suite("Barriers of a batch")
struct BarrierTests {
  private static let refusal = EngineError.closed

  @Test(
    "all threads that wait get the result, also one that comes after it", arguments: [1, 2, 40])
  func manyThreads(count: Int) async {
    let result = BlockingResult()
    let answers = Received<Bool>()
    let begun = Received<Int>()
    await withTaskGroup { group in
      for _ in 0..<count {
        group.addTask {
          await onThread {
            begun.add(1)
            do throws(EngineError) {
              _ = try result.get()
              answers.add(false)
            } catch {
              answers.add(error == Self.refusal)
            }
          }
        }
      }
      group.addTask {
        while begun.all.count < count { await Task.yield() }
        result.set(.failure(Self.refusal))
      }
    }
    #expect(answers.all == Array(repeating: true, count: count))
    #expect(throws: Self.refusal) { try result.get() }
  }

  @Test("a result may be set before a thread waits for it, and if no thread ever does")
  func early() throws {
    let result = BlockingResult()
    result.set(.success(LogSequenceNumber(7)))
    #expect(try result.get() == LogSequenceNumber(7))
    BlockingResult().set(.success(nil))
  }

  @Test("callers of one batch share a barrier, each counts as a caller, and it comes last")
  func shared() throws {
    var batch = Batch()
    #expect(batch.isEmpty && batch.callerCount == 0)
    let barrier = batch.joinBarrier()
    #expect(!batch.isEmpty && !batch.hasNoCompletions && batch.callerCount == 1)
    #expect(batch.wantsSynchronize && batch.completions.isEmpty)
    #expect(batch.joinBarrier() === barrier && batch.callerCount == 2)
    let order = Received<String>()
    batch.completions.append(.init(result: .success(nil)) { _ in order.add("write") })
    #expect(batch.callerCount == 3)
    batch.closeBarrier()
    #expect(batch.callerCount == 3 && batch.completions.count == 2)
    batch.closeBarrier()
    #expect(batch.completions.count == 2)
    for pending in batch.completions {
      pending.completion(pending.failing(Self.refusal).result)
    }
    #expect(order.all == ["write"])
    #expect(throws: Self.refusal) { try barrier.get() }
    batch.removeAll()
    #expect(batch.isEmpty && batch.callerCount == 0 && !batch.wantsSynchronize)
    let next = batch.joinBarrier()
    #expect(next !== barrier)
    next.set(.success(nil))
  }

  @Test("the next batch has a barrier of its own")
  func nextBatch() throws {
    let engine = try Engine.open(
      at: "/db", options: .inline, environment: SimulatedDisk(seed: 5).environment)
    let first = engine.pipeline.withAdmission { $0.batch.joinBarrier() }
    engine.pump()
    #expect(try first.get() == nil)
    let second = engine.pipeline.withAdmission { $0.batch.joinBarrier() }
    #expect(second !== first)
    engine.pump()
    #expect(try second.get() == nil)
    try engine.close()
  }

  @Test("taking the completions of an open batch takes its callers")
  func taken() throws {
    var batch = Batch()
    let barrier = batch.joinBarrier()
    _ = batch.joinBarrier()
    let completions = batch.takeCompletions(failing: Self.refusal)
    #expect(completions.count == 1)
    #expect(batch.callerCount == 0 && batch.hasNoCompletions)
    for pending in completions { pending.completion(pending.result) }
    #expect(throws: Self.refusal) { try barrier.get() }
  }

  /// A call of the disk that a barrier waits for, and how it fails.
  struct Refusal: CustomTestStringConvertible {
    let testDescription: String
    let call: HeldDisk.Call
    let fault: DiskFault
  }

  static let refusals = [
    Refusal(
      testDescription: "synchronize", call: .synchronize,
      fault: .failedSynchronize(at: 1, pages: .kept)),
    Refusal(
      testDescription: "no room", call: .write,
      fault: .failure(of: .write, at: 1, with: ENOSPC)),
  ]

  @Test(
    "what the disk refuses fails the barrier of its batch, and that of the one that is open",
    arguments: refusals)
  func failure(refusal: Refusal) async throws {
    let disk = HeldDisk()
    let engine = try Engine.open(at: "/db", environment: disk.environment)
    engine.submit(try set("a", .integer(1)), completion: nil)
    #expect(!Self.isRefused(engine))
    disk.hold(refusal.call)
    engine.submit(try set("b", .integer(1)), completion: nil)
    async let first = onThread { Self.isRefused(engine) }
    await onThread { disk.waitForCall() }
    engine.submit(try set("c", .integer(1)), completion: nil)
    async let second = onThread { Self.isRefused(engine) }
    async let third = onThread { Self.isRefused(engine) }
    while engine.pipeline.withAdmission({ $0.batch.callerCount }) < 2 { await Task.yield() }
    disk.disk.inject(refusal.fault)
    disk.release()
    let answers = await [first, second, third]
    #expect(answers == [true, true, true])
    #expect(engine.pipeline.withAdmission { $0.batch.callerCount } == 0)
    let (root, key) = (engine.head.root, try Key("a"))
    #expect(root.childCount == 1 && root.child(key).scalar == .integer(1))
    try? await engine.close()
  }

  private static func isRefused(_ engine: Engine) -> Bool {
    do throws(EngineError) {
      try engine.synchronize()
      return false
    } catch {
      return true
    }
  }

  @Test("closing answers a barrier that came after the last batch was taken")
  func late() throws {
    let engine = try Engine.open(
      at: "/db", options: .inline, environment: SimulatedDisk(seed: 10).environment)
    let (barrier, late) = engine.pipeline.withAdmission { admission in
      let barrier = admission.batch.joinBarrier()
      return (barrier, admission.endClosing())
    }
    #expect(late.count == 1)
    for pending in late { pending.completion(pending.result) }
    #expect(throws: EngineError.closed) { try barrier.get() }
  }
}
