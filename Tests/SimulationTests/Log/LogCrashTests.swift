import DendroStorage
import DendroTesting
import Testing

/// The log alone: payloads in, crash, payloads out.
@Suite struct LogCrashTests {
  /// Random workloads, each crashed after every call that changed something, in every listed state.
  @Test func everyCrashStateOfRandomLogs() async throws {
    if let replay = Reproduction.requested(for: "log") {
      let recording = try Self.recording(replay.seed)
      for point in recording.points where point.operationCount == replay.crashes[0].operation {
        replay.explain(recording.disk, point)
      }
      #expect(Self.problem(replay, recording) == nil)
      return
    }
    if Reproduction.isOnlyOne { return }
    let count = Sweep.scaled(80)
    await Sweep.run("log", Array(0..<UInt64(count)), goal: Sweep.scaled(100_000)) { seed in
      do {
        return try Self.judgeAll(seed)
      } catch {
        return Sweep.Tally(failures: ["log \(seed): the workload itself failed: \(error)"])
      }
    }
  }

  /// A mark is not synchronized. The process is killed behind it, the next one finds it and begins a
  /// segment that names it: a power loss must not take it any more.
  @Test func aMarkOfAKilledProcessIsDurableBeforeASegmentNamesIt() throws {
    try judgeAll([
      .append(1), .synchronize, .mark, .kill(call: 1, bytes: 0), .roll, .roll, .append(1),
      .synchronize,
    ])
  }

  /// What was appended, but not synchronized, survives a kill; the next opener tells of it, and must
  /// have made it durable first.
  @Test func whatAKilledProcessAppendedIsDurableOnceItWasRead() throws {
    try judgeAll([.append(3), .kill(call: 1, bytes: 0), .synchronize, .append(1), .synchronize])
  }

  /// Every crash point and every state of one workload.
  private func judgeAll(_ steps: [LogRecording.Step]) throws {
    let recording = try LogRecording(seed: 1, steps: steps)
    for point in recording.points {
      point.forEachState { state in
        let problem = recording.problem(
          of: point.disk(state), acknowledged: recording.acknowledged(at: point.operationCount),
          attempted: recording.attempted(at: point.operationCount))
        #expect(problem == nil, "operation \(point.operationCount), state \(state)")
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
