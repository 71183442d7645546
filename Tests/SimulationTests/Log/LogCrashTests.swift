import DendroCrashHarness
import DendroStorage
import DendroTesting
import DendroTestSupport
import Testing

/// The log alone: payloads in, crash, payloads out.
@Suite struct LogCrashTests {
  /// Random workloads, each crashed after every call that changed something, in every listed state.
  @Test func everyCrashStateOfRandomLogs() async {
    await LogCrashes.sweep.check(0..<UInt64(Scale.scaled(80)), goal: Scale.goal(100_000))
  }

  /// An idle record is not synchronized. The process is killed behind it, the next one finds it and begins a
  /// segment that names it: a power loss must not take it any more.
  @Test func aMarkOfAKilledProcessIsDurableBeforeASegmentNamesIt() throws {
    try judgeAll([
      .append(1), .synchronize, .idle, .kill(call: 1, bytes: 0), .roll, .roll, .append(1),
      .synchronize,
    ])
  }

  /// What was appended, but not synchronized, survives a kill; the next opener shows it, and must have made it
  /// durable before.
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
}
