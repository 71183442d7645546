import DendroEngine
import DendroTesting
import DendroTree
import Testing

/// The process is killed at any call, the next one goes on with what the system still has in
/// memory, and then the power is lost: what the second process was told, the first may never have
/// made durable.
@Suite struct KillThenPowerLossTests {
  static let workload: [Step] = [
    .set("a", .integer(1)), .set("b", .string("two")), .roll, .set("a/c", .integer(3)),
    .checkpoint, .write([.remove(Path("b")), .increment(Path("a/c"), .integer(1))]), .close,
    .set("d", .string("five")), .checkpoint, .set("e", .integer(6)), .roll, .set("f", .integer(7)),
    .checkpoint, .close, .set("g", .integer(8)), .synchronize, .set("h", .integer(9)),
  ]

  static func recording(call: Int, bytes: Int) throws(EngineError) -> EngineRecording {
    try EngineRecording(seed: 1, steps: [.kill(call: call, bytes: bytes)] + workload)
  }

  @Test func everyKillThenEveryCrash() async throws {
    if Reproduction.isOnlyOne { return }
    let calls = try Self.recording(call: .max, bytes: 0).disk.operationCount
    var kills: [(call: Int, bytes: Int)] = []
    for call in 1...calls { for bytes in [0, 25] { kills.append((call, bytes)) } }
    await Sweep.run("kill, then power loss", kills, goal: 30 * calls) { kill in
      let recording: EngineRecording
      do {
        recording = try Self.recording(call: kill.call, bytes: kill.bytes)
      } catch {
        return Sweep.Tally(failures: ["killed at call \(kill.call): \(error)"])
      }
      var tally = Sweep.Tally()
      tally.failures += recording.problems.map { "killed at call \(kill): \($0)" }
      var options = CrashEnumeration()
      options.onlyNew = true
      options.subsetLimit = 5
      options.sampleCount = 8
      options.tornByteStride = .max
      for point in recording.points where point.operationCount >= kill.call {
        let judge = CrashJudge(recording, point)
        point.forEachState(options) { state in
          guard !tally.isHopeless else { return }
          tally.count += 1
          if let problem = judge.problem(of: state, isThorough: tally.count % 32 == 0) {
            tally.failures.append(
              "killed at call \(kill.call) with \(kill.bytes) bytes, crashed after "
                + "\(point.operationCount) in \(state): \(problem)")
          }
        }
      }
      return tally
    }
  }
}
