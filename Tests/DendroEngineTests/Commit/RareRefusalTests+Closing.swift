import DendroPlatform
import DendroStorage
import DendroTestSupport
import DendroTesting
import DendroTree
import Synchronization
import Testing

@testable import DendroEngine

extension RareRefusalTests {
  // MARK: Closing in the midst of it

  /// Closes the engine from another thread, and returns once it begins no checkpoint any more.
  private static func closeAndWait(_ engine: Engine) {
    Task.detached { try? await engine.close() }
    // A checkpoint that is requested before that gets its result at the end.
    let refused = Received<Bool>()
    while refused.all.isEmpty {
      Task.detached {
        do {
          try await engine.checkpoint()
        } catch EngineError.closed {
          refused.add(true)
        } catch {}
      }
      usleep(1000)
    }
  }

  private final class Holder: Sendable {
    let engine = Mutex<Engine?>(nil)
  }

  /// Runs something before each number is drawn.
  private final class WatchedRandomness: Randomness {
    private let randomness: SeededRandomness
    private let body: @Sendable () -> Void

    init(_ randomness: SeededRandomness, _ body: @escaping @Sendable () -> Void) {
      self.randomness = randomness
      self.body = body
    }

    func next() -> UInt64 {
      body()
      return randomness.next()
    }
  }

  @Test("closed while a checkpoint is written: both end, and nothing is lost")
  func closedMeanwhile() async throws {
    let disk = SimulatedDisk(seed: 1)
    let holder = Holder()
    // The second number from then on is the checkpoint's; the first one is that of the segment before
    // which it stands.
    let isDue = Atomic<Int>(-1)
    let randomness = WatchedRandomness(disk.randomness) {
      guard isDue.wrappingSubtract(1, ordering: .relaxed).newValue == 0,
        let engine = holder.engine.withLock({ $0 })
      else { return }
      Self.closeAndWait(engine)
    }
    var options = EngineOptions()
    options.checkpointFactor = 0
    let engine = try Engine.open(
      at: "/db", options: options,
      environment: Environment(fileSystem: disk, clock: disk.clock, randomness: randomness))
    holder.engine.withLock { $0 = engine }
    for number in 0..<3 {
      try await engine.write(set("k\(number)", .string(incompressible(300_000))))
    }
    let root = engine.head.root
    isDue.store(2, ordering: .relaxed)
    await #expect(throws: EngineError.closed) { try await engine.checkpoint() }
    holder.engine.withLock { $0 = nil }
    let again = try await Self.reopened(disk)
    #expect(again.head.root == root)
    try await again.close()
  }

  /// Once the one who closes has come to the end.
  private static func reopened(_ disk: SimulatedDisk) async throws -> Engine {
    while true {
      do throws(EngineError) {
        return try Engine.open(at: "/db", options: .inline, environment: disk.environment)
      } catch {
        guard case .storage(.locked) = error else { throw error }
        await Task.yield()
      }
    }
  }

  // The purge                              the one who closes
  // writes its checkpoint
  // removes what no opening needs: waits
  //                                        is closing
  // continues: reads the checkpoint back?
  @Test(
    "closed between the checkpoint of a purge and its removals: the past stays, and nothing is lost"
  )
  func closedBeforePurge() async throws {
    let held = HeldDisk()
    var options = EngineOptions()
    options.checkpointFactor = 0
    let engine = try Engine.open(at: "/db", options: options, environment: held.environment)
    for number in 0..<3 {
      if number > 0 { try await engine.checkpoint() }
      try await engine.write(set("k\(number)", .integer(1)))
    }
    let root = engine.head.root
    // The third checkpoint lets the first one and the log before the second one go.
    held.hold(.removeSegment)
    let purge = Task { () -> EngineError? in
      do throws(EngineError) {
        try await engine.purgeHistory()
        return nil
      } catch {
        return error
      }
    }
    await onThread { held.waitForCall() }
    await onThread { Self.closeAndWait(engine) }
    held.release()
    #expect(await purge.value == .closed)

    let again = try await Self.reopened(held.disk)
    #expect(again.head.root == root)
    #expect(again.statistics().checkpointLSN == LogSequenceNumber(3))
    let names = held.disk.names(in: "/db")
    #expect(names.count { $0.hasSuffix(".checkpoint") } == 2, "a purge leaves one: \(names)")
    // What the first one had begun another one ends.
    try await again.purgeHistory()
    #expect(held.disk.names(in: "/db").count { $0.hasSuffix(".checkpoint") } == 1)
    #expect(again.head.root == root)
    try await again.close()
  }

  @Test("a purge takes the files of what recoveries cut, too")
  func purgedTornFiles() throws {
    let engine = try open()
    engine.submit(try set("a", .integer(1)), completion: nil)
    engine.pump()
    let point = disk.crashPoint()
    let crashed = point.disk(point.allKept)
    let name = try #require(crashed.names(in: "/db").first { $0.hasSuffix(".log") })
    let end = try #require(crashed.contents(of: "/db/" + name)?.lastIndex { $0 != 0 })
    crashed.overwrite("/db/" + name, at: end + 1, with: [1, 2, 3])
    let again = try Engine.open(at: "/db", options: .inline, environment: crashed.environment)
    #expect(again.report.tornFile != nil)
    func torn() -> Int { crashed.names(in: "/db").count { $0.contains("torn") } }
    #expect(torn() == 1)
    again.submit(try set("a", .integer(2)), completion: nil)
    try again.purgeHistory()
    #expect(torn() == 0)
    try again.close()
  }
}
