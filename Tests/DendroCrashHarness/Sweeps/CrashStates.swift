package import DendroEngine
import DendroTesting

/// G1: the whole engine, crashed after every call that changed something.
package enum CrashStates {
  package static let sweep = Sweep("G1", stepCount: { steps($0).count }, judge: judge)

  package static func steps(_ seed: UInt64) -> [Step] {
    var generator = StepGenerator(seed: seed)
    return generator.steps(12)
  }

  package static func recording(_ place: Reproduction) throws(EngineError) -> EngineRecording {
    try EngineRecording(seed: place.job, steps: place.kept(of: steps(place.job)))
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    let recording: EngineRecording
    do {
      recording = try Self.recording(place)
    } catch {
      tally.fail(place, "the workload itself failed: \(error)")
      return tally
    }
    for problem in recording.problems { tally.fail(place, problem) }
    if let crash = place.crashes.first {
      one(crash, of: recording, place, &tally)
      return tally
    }
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 5
    options.sampleCount = 12
    options.tornByteStride = 5
    options.seed = place.job
    var random = SeededRandomness(seed: place.job)
    for point in recording.points {
      let judge = CrashJudge(recording, point)
      func look(_ state: CrashState) {
        guard !tally.isHopeless else { return }
        tally.count += 1
        if let problem = judge.problem(of: state, isThorough: tally.count % 16 == 0) {
          tally.fail(place.at(point.operationCount, state), problem)
        }
      }
      point.forEachState(options, look)
      for _ in 0..<6 where point.pendingCount > 1 { look(point.randomState(using: &random)) }
    }
    return tally
  }

  /// One state alone, with what led to it.
  static func one(
    _ crash: Reproduction.Crash, of recording: EngineRecording, _ place: Reproduction,
    _ tally: inout Tally
  ) {
    guard let point = recording.points.first(where: { $0.operationCount == crash.operation }) else {
      return tally.fail(place, "the workload has no operation \(crash.operation)")
    }
    recording.disk.explain(point, crash.state)
    tally.count += 1
    if let problem = CrashJudge(recording, point).problem(of: crash.state, isThorough: true) {
      tally.fail(place, problem)
    }
  }
}
