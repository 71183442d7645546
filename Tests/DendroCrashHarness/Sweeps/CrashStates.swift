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
    try EngineRecording(
      seed: place.job, steps: place.kept(of: steps(place.job)),
      mirrors: EngineRecording.mirrors(place.job))
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    guard let recording = place.record(&tally, { try Self.recording(place) }) else { return tally }
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 5
    options.sampleCount = 12
    options.tornByteStride = 5
    options.seed = place.job
    judge(recording, place, options, randomCount: 6, thoroughStride: 16, &tally)
    return tally
  }

  /// Judges what crashes leave of a workload: the one that is reproduced, or else all that `options` has.
  ///
  /// - `first`: the call after which the first crash comes.
  /// - `randomCount`: how many states more are drawn after each call, from the job's number.
  /// - `thoroughStride`: each so many states one is also written to, crashed again and closed.
  static func judge(
    _ recording: EngineRecording, _ place: Reproduction, _ options: CrashEnumeration,
    from first: Int = 0, randomCount: Int = 0, thoroughStride: Int, _ tally: inout Tally
  ) {
    if let crash = place.crashes.first { return one(crash, of: recording, place, &tally) }
    var random = SeededRandomness(seed: place.job)
    for point in recording.points where point.operationCount >= first {
      let judge = CrashJudge(recording, point)
      func look(_ state: CrashState) {
        guard !tally.isHopeless else { return }
        tally.count += 1
        let isThorough = tally.count % thoroughStride == 0
        if let problem = judge.problem(of: state, isThorough: isThorough) {
          tally.fail(place.at(point.operationCount, state), problem)
        }
      }
      point.forEachState(options, look)
      for _ in 0..<randomCount where point.pendingCount > 1 {
        look(point.randomState(using: &random))
      }
    }
  }

  /// One state alone, with what led to it.
  private static func one(
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

extension Reproduction {
  /// Records the job's workload; nil if that failed, which the tally then has, as it has what did not hold
  /// while it ran.
  func record(_ tally: inout Tally, _ record: () throws -> EngineRecording) -> EngineRecording? {
    do {
      let recording = try record()
      for problem in recording.problems { tally.fail(self, problem) }
      return recording
    } catch {
      tally.fail(self, "the workload itself failed: \(error)")
      return nil
    }
  }
}
