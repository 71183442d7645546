import DendroStorage
import DendroTesting

/// The log alone, without tree or engine: payloads in, crash, payloads out.
package enum LogCrashes {
  package static let sweep = Sweep("log", stepCount: { steps($0).count }, judge: judge)

  private static func steps(_ seed: UInt64) -> [LogRecording.Step] {
    var random = SeededRandomness(seed: seed)
    return LogRecording.randomSteps(using: &random)
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    let recording: LogRecording
    do {
      recording = try LogRecording(seed: place.job, steps: place.kept(of: steps(place.job)))
    } catch {
      tally.fail(place, "the workload itself failed: \(error)")
      return tally
    }
    func look(_ point: CrashPoint, _ state: CrashState) {
      tally.count += 1
      let problem = recording.problem(
        of: point.disk(state, seed: place.job),
        acknowledged: recording.acknowledged(at: point.operationCount),
        attempted: recording.attempted(at: point.operationCount))
      if let problem { tally.fail(place.at(point.operationCount, state), problem) }
    }
    if let crash = place.crashes.first {
      for point in recording.points where point.operationCount == crash.operation {
        recording.disk.explain(point, crash.state)
        look(point, crash.state)
      }
      return tally
    }
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 6
    options.sampleCount = 16
    options.tornByteStride = place.job % 4 == 0 ? 1 : 7
    options.seed = place.job
    var random = SeededRandomness(seed: place.job)
    for point in recording.points {
      func judge(_ state: CrashState) {
        if !tally.isHopeless { look(point, state) }
      }
      point.forEachState(options, judge)
      for _ in 0..<8 where point.pendingCount > 1 { judge(point.randomState(using: &random)) }
    }
    return tally
  }
}
