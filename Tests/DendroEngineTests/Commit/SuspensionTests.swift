import DendroStorage
import DendroTestSupport
import DendroTree
import Foundation
import Synchronization
import Testing

@testable import DendroEngine

/// Tasks that await writes hold none of the few threads on which all tasks run.
@Suite("Waiting without a thread")
struct SuspensionTests {
  private final class Counts: Sendable {
    let begun = Atomic<Int>(0)
    let ended = Atomic<Int>(0)
    let unrelated = Atomic<Bool>(false)
  }

  /// More than there are threads for tasks.
  private static let writerCount = ProcessInfo.processInfo.activeProcessorCount + 8

  /// Runs tasks that write to the place, all of which have to wait, until another task has run beside them
  /// or they hold all threads.
  ///
  /// - Returns: whether the other task ran.
  private static func runsBeside(
    _ engine: Engine, _ counts: Counts, place: String, waitingMin: Int
  ) -> Bool {
    let width = ProcessInfo.processInfo.activeProcessorCount
    for number in 0..<writerCount {
      Task {
        counts.begun.add(1, ordering: .relaxed)
        try await engine.write(set("\(place)/\(number)", .integer(1)))
        counts.ended.add(1, ordering: .relaxed)
      }
    }
    func isStuck() -> Bool { engine.heldThreadCount >= width }
    while !isStuck(),
      counts.begun.load(ordering: .relaxed) < writerCount
        || engine.waitingWriterCount < waitingMin
    {
      usleep(1000)
    }
    Task { counts.unrelated.store(true, ordering: .relaxed) }
    while !isStuck(), !counts.unrelated.load(ordering: .relaxed) { usleep(1000) }
    return counts.unrelated.load(ordering: .relaxed)
  }

  /// With a backlog that has room for one write.
  private static func open(_ held: HeldDisk) throws -> Engine {
    var options = EngineOptions()
    options.stallByteLimit = 1
    return try Engine.open(at: "/db", options: options, environment: held.environment)
  }

  @Test("while the disk is busy and the backlog over its limit")
  func backlog() async throws {
    let held = HeldDisk()
    let engine = try Self.open(held)
    let counts = Counts()
    held.hold(.synchronize)
    let isFree = await onThread {
      defer { held.release() }
      return Self.runsBeside(engine, counts, place: "a", waitingMin: 0)
    }
    #expect(isFree)
    while counts.ended.load(ordering: .relaxed) < Self.writerCount { await Task.yield() }
    #expect(try engine.view(at: path("a")).childCount == Self.writerCount)
    try await engine.close()
  }

  @Test("a judged write that is denied lets the next one pass", .timeLimit(.minutes(5)))
  func denied() async throws {
    let held = HeldDisk()
    let engine = try Self.open(held)
    let counts = Counts()
    held.hold(.synchronize)
    engine.submit(try set("first", .integer(1)), completion: nil)
    held.waitForCall()
    engine.submit(try set("second", .integer(1)), completion: nil)
    for number in 0..<Self.writerCount {
      let write = EncodedWrite(try set("\(number)", .integer(1)))
      let judge = FixedJudge(isAllowed: number % 4 == 3)
      Task {
        _ = try? await engine.write(write, judge: judge)
        counts.ended.add(1, ordering: .relaxed)
      }
    }
    while engine.pipeline.stall.waitingTaskCount < Self.writerCount {
      try Task.checkCancellation()
      await Task.yield()
    }
    held.release()
    while counts.ended.load(ordering: .relaxed) < Self.writerCount {
      try Task.checkCancellation()
      await Task.yield()
    }
    #expect(engine.head.root.childCount == 2 + Self.writerCount / 4)
    try await engine.close()
  }

  @Test("while a transaction keeps its place to itself")
  func reservation() async throws {
    var options = EngineOptions()
    options.reservationTimeout = .seconds(3600)
    let engine = Engine.inMemory(options: options)
    let counts = Counts()
    let received = Received<Bool>()
    let place = try path("a")
    let isFree = await onThread {
      var run: Int64 = 0
      var isFree = false
      engine.transact(at: place, refused: { Issue.record("\($0)") }) { _ in
        run += 1
        if run <= 3 {
          let isWritten = DispatchSemaphore(value: 0)
          Thread.detachNewThread { [run] in
            engine.submit(Draft(.set(place, Node(.integer(run)))), completion: nil)
            isWritten.signal()
          }
          isWritten.wait()
        } else {
          isFree = Self.runsBeside(engine, counts, place: "a", waitingMin: Self.writerCount)
        }
        return TransactionDecision(Draft(.set(place, Node(.string("decided"))))) { result in
          if case .success = result { received.add(true) }
        }
      }
      #expect(run == 4)
      return isFree
    }
    #expect(isFree)
    while counts.ended.load(ordering: .relaxed) < Self.writerCount { await Task.yield() }
    #expect(received.all == [true])
    #expect(try engine.view(at: place).childCount == Self.writerCount)
    try await engine.close()
  }

  @Test("a thousand tasks through a backlog with room for one; closing lets the rest go")
  func many() async throws {
    let held = HeldDisk()
    var options = EngineOptions()
    options.stallByteLimit = 1
    options.durability = .none
    for closes in [false, true] {
      let engine = try Engine.open(
        at: "/\(closes)", options: options, environment: held.environment)
      let written = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<1000 {
          group.addTask {
            do {
              try await engine.write(set("\(number)", .integer(1)))
              return true
            } catch let error as EngineError where error == .closed {
              return false
            }
          }
          if closes, number == 500 {
            group.addTask {
              try await engine.close(); return false
            }
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(engine.head.root.childCount == written)
      #expect(closes || written == 1000)
      try await engine.close()
    }
  }

  @Test("following the log ends without waiting for who removes files at that moment")
  func followerGoes() async throws {
    let held = HeldDisk()
    var options = EngineOptions()
    options.segmentByteLimit = 1000
    let engine = try Engine.open(at: "/db", options: options, environment: held.environment)
    for number in 0..<3 {
      try await engine.write(set("\(number)", .string(incompressible(2000))))
      try await engine.checkpoint()
    }
    var reader: ChangeReader? = try engine.changes(since: engine.head.lsn)
    try await engine.write(set("last", .integer(1)))
    #expect(try await reader?.next()?.count == 1)
    held.hold(.removeSegment)
    let purge = Task { try await engine.purgeHistory() }
    await onThread { held.waitForCall() }
    let isGone = DispatchSemaphore(value: 0)
    let last = Handed(reader)
    reader = nil
    Thread.detachNewThread {
      last.drop()
      isGone.signal()
    }
    // This waits for the removal, which waits for this test: it gives up in the end.
    let inTime = await onThread { isGone.wait(timeout: .now() + 600) }
    #expect(inTime == .success)
    held.release()
    try await purge.value
    try await engine.close()
  }
}

/// Hands the last reference to another thread.
private final class Handed: Sendable {
  private let reader: Mutex<ChangeReader?>
  init(_ reader: ChangeReader?) { self.reader = Mutex(reader) }
  func drop() { reader.withLock { $0 = nil } }
}
