import DendroEngine
import DendroStorage
import DendroTesting
import DendroTree
import Testing

/// G3: a crash while recovering from a crash, after each call of the recovery; and a third one
/// during the recovery from that.
@Suite struct RecoveryCrashTests {
  @Test func everyCrashWhileRecovering() async throws {
    if let replay = Reproduction.requested(for: "G3") {
      #expect(try Self.problem(replay) == nil)
      return
    }
    if Reproduction.isOnlyOne { return }
    let seeds = (0..<UInt64(Sweep.scaled(180))).map { $0 + 1_000_000 }
    await Sweep.run("G3", seeds, goal: Sweep.scaled(200_000)) { seed in
      do {
        return Self.judgeAll(try CrashStateTests.recording(seed), seed)
      } catch {
        return Sweep.Tally(failures: ["G3 \(seed): the workload itself failed: \(error)"])
      }
    }
  }

  static func judgeAll(_ recording: EngineRecording, _ seed: UInt64) -> Sweep.Tally {
    var tally = Sweep.Tally()
    var random = SeededRandomness(seed: seed)
    let points = recording.points.filter { $0.pendingCount > 0 }
    guard !points.isEmpty else { return tally }
    while tally.count < 500, !tally.isHopeless {
      let point = points[Int(random.next() % UInt64(points.count))]
      let judge = CrashJudge(recording, point)
      let first = (point.operationCount, point.randomState(using: &random))
      descend(judge, point.disk(first.1, seed: seed), judge.bounds, [first], seed, &random, &tally)
    }
    return tally
  }

  /// Opens the disk, and crashes it after each call that the opening made.
  private static func descend(
    _ judge: CrashJudge, _ disk: SimulatedDisk, _ bounds: ClosedRange<Int>,
    _ crashes: [(operation: Int, state: CrashState)], _ seed: UInt64,
    _ random: inout SeededRandomness, _ tally: inout Sweep.Tally
  ) {
    func fail(_ problem: String, _ crashes: [(operation: Int, state: CrashState)]) {
      let place = Reproduction(suite: "G3", seed: seed, crashes: crashes)
      tally.failures.append("\(place): \(problem)")
    }
    let found: Int
    do throws(EngineError) {
      let engine = try EngineRecording.open(disk)
      if let problem = CrashJudge.problem(of: engine, judge.recording, bounds) {
        return fail(problem, crashes)
      }
      found = Int(engine.head.lsn.rawValue)
    } catch {
      return fail("refused: \(error)", crashes)
    }
    let calls = disk.operationCount
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 4
    options.sampleCount = 6
    options.tornByteStride = 13
    options.seed = seed
    for point in disk.crashPoints() {
      // What it told once it was open must stay.
      let isOpen = point.operationCount == calls
      let next = (isOpen ? found : bounds.lowerBound)...(isOpen ? found : bounds.upperBound)
      point.forEachState(options) { state in
        guard !tally.isHopeless else { return }
        tally.count += 1
        let crashes = crashes + [(point.operationCount, state)]
        let second = point.disk(state, seed: seed)
        if crashes.count == 2, random.next() % 64 == 0 {
          tally.details["with a third crash", default: 0] += 1
          descend(judge, second, next, crashes, seed, &random, &tally)
          return
        }
        do throws(EngineError) {
          let engine = try EngineRecording.open(second)
          if let problem = CrashJudge.problem(of: engine, judge.recording, next) {
            fail(problem, crashes)
          }
        } catch {
          fail("refused: \(error)", crashes)
        }
      }
    }
  }

  private static func problem(_ replay: Reproduction) throws(EngineError) -> String? {
    let recording = try CrashStateTests.recording(replay.seed)
    guard
      let point = recording.points.first(where: {
        $0.operationCount == replay.crashes[0].operation
      })
    else { return "no such operation" }
    replay.explain(recording.disk, point)
    var bounds = CrashJudge(recording, point).bounds
    var disk = point.disk(replay.crashes[0].state, seed: replay.seed)
    for (operation, state) in replay.crashes.dropFirst() {
      let engine = try EngineRecording.open(disk)
      if disk.operationCount == operation {
        bounds = Int(engine.head.lsn.rawValue)...Int(engine.head.lsn.rawValue)
      }
      guard let point = disk.crashPoints().first(where: { $0.operationCount == operation }) else {
        return "no such operation"
      }
      print("recovery:")
      Reproduction(suite: "G3", seed: 0, crashes: [(operation, state)]).explain(disk, point)
      disk = point.disk(state, seed: replay.seed)
    }
    return CrashJudge.problem(of: try EngineRecording.open(disk), recording, bounds)
  }
}
