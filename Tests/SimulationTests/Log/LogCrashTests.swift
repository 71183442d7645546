import DendroStorage
import DendroTesting
import Testing

/// The log alone: payloads in, crash, payloads out.
@Suite struct LogCrashTests {
  /// Random workloads, each crashed after every call that changed something, in every listed state.
  @Test func everyCrashStateOfRandomLogs() async throws {
    if let replay = Reproduction.requested(for: "log") {
      let recording = try Self.recording(replay.seed)
      #expect(Self.problem(replay, recording) == nil)
      return
    }
    if Reproduction.isOnlyOne { return }
    let count = Sweep.scaled(1500)
    await Sweep.run("log", Array(0..<UInt64(count)), goal: Sweep.scaled(100_000)) { seed in
      do {
        return try Self.judgeAll(seed)
      } catch {
        return Sweep.Tally(failures: ["log \(seed): the workload itself failed: \(error)"])
      }
    }
  }

  static func recording(_ seed: UInt64) throws(StorageError) -> LogRecording {
    var random = SeededRandomness(seed: seed)
    return try LogRecording(seed: seed, steps: LogRecording.randomSteps(using: &random))
  }

  static func judgeAll(_ seed: UInt64) throws(StorageError) -> Sweep.Tally {
    let recording = try recording(seed)
    var tally = Sweep.Tally()
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 6
    options.sampleCount = 16
    options.tornByteStride = seed % 4 == 0 ? 1 : 7
    options.seed = seed
    var random = SeededRandomness(seed: seed)
    for point in recording.points {
      func judge(_ state: CrashState) {
        guard !tally.isHopeless else { return }
        tally.count += 1
        let place = Reproduction(
          suite: "log", seed: seed, crashes: [(point.operationCount, state)])
        if let problem = problem(place, recording, point) {
          tally.failures.append("\(place): \(problem)")
        }
      }
      point.forEachState(options, judge)
      for _ in 0..<8 where point.pendingCount > 1 { judge(point.randomState(using: &random)) }
    }
    return tally
  }

  private static func problem(
    _ place: Reproduction, _ recording: LogRecording, _ point: CrashPoint? = nil
  ) -> String? {
    let (operation, state) = place.crashes[0]
    let point = point ?? recording.points.first { $0.operationCount == operation }!
    return recording.problem(
      of: point.disk(state, seed: place.seed),
      acknowledged: recording.acknowledged(at: operation),
      attempted: recording.attempted(at: operation))
  }
}
