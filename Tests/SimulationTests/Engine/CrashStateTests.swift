import DendroEngine
import DendroTesting
import DendroTree
import Testing

/// G1: the whole engine, crashed after every call that changed something.
@Suite struct CrashStateTests {
  static let goal = 1_000_000

  @Test func everyCrashStateOfRandomWorkloads() async throws {
    if let replay = Reproduction.requested(for: "G1") {
      let recording = try Self.recording(replay.seed)
      let (operation, state) = replay.crashes[0]
      let point = try #require(recording.points.first { $0.operationCount == operation })
      replay.explain(recording.disk, point)
      #expect(CrashJudge(recording, point).problem(of: state, isThorough: true) == nil)
      return
    }
    if Reproduction.isOnlyOne { return }
    await Sweep.run("G1", Array(0..<UInt64(Sweep.scaled(960))), goal: Sweep.scaled(Self.goal)) {
      seed in
      do {
        return Self.judgeAll(try Self.recording(seed), seed)
      } catch {
        return Sweep.Tally(failures: ["G1 \(seed): the workload itself failed: \(error)"])
      }
    }
  }

  static func recording(_ seed: UInt64) throws(EngineError) -> EngineRecording {
    var generator = StepGenerator(seed: seed)
    return try EngineRecording(seed: seed, steps: generator.steps(12))
  }

  static func judgeAll(_ recording: EngineRecording, _ seed: UInt64) -> Sweep.Tally {
    var tally = Sweep.Tally()
    tally.failures += recording.problems.map { "G1 \(seed): \($0)" }
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 5
    options.sampleCount = 12
    options.tornByteStride = 5
    options.seed = seed
    var random = SeededRandomness(seed: seed)
    for point in recording.points {
      let judge = CrashJudge(recording, point)
      func look(_ state: CrashState) {
        guard !tally.isHopeless else { return }
        tally.count += 1
        if let problem = judge.problem(of: state, isThorough: tally.count % 16 == 0) {
          let place = Reproduction(
            suite: "G1", seed: seed, crashes: [(point.operationCount, state)])
          tally.failures.append("\(place): \(problem)")
        }
      }
      point.forEachState(options, look)
      for _ in 0..<6 where point.pendingCount > 1 { look(point.randomState(using: &random)) }
    }
    return tally
  }
}
