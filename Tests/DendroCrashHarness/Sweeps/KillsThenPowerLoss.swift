package import DendroEngine
import DendroTesting
import DendroTree

/// The process is killed at any call, the next one continues with the files that the system has in
/// memory, and then the power is lost: what the second process has read, the first may never have
/// made durable.
package enum KillsThenPowerLoss {
  static let workload: [Step] = [
    .set("a", .integer(1)), .set("b", .string("two")), .roll, .set("a/c", .integer(3)),
    .checkpoint, .write([.remove(Path("b")), .increment(Path("a/c"), .integer(1))]), .close,
    .set("d", .string("five")), .checkpoint, .set("e", .integer(6)), .roll, .set("f", .integer(7)),
    .checkpoint, .close, .set("g", .integer(8)), .synchronize, .set("h", .integer(9)),
  ]

  /// A job for each call and each of two numbers of bytes that a write at it gets in.
  package static func sweep() throws(EngineError) -> Sweep {
    let calls = try EngineRecording(seed: 1, steps: workload).disk.operationCount
    return Sweep(
      "kill-then-power-loss", name: "kill, then power loss", jobs: 0..<UInt64(2 * calls),
      stepCount: { _ in workload.count }, judge: judge)
  }

  private static func judge(_ place: Reproduction) -> Tally {
    var tally = Tally()
    let call = Int(place.job / 2) + 1
    let kill = Step.kill(call: call, bytes: place.job % 2 == 0 ? 0 : 25)
    guard
      let recording = place.record(
        &tally, { try EngineRecording(seed: 1, steps: [kill] + place.kept(of: workload)) })
    else { return tally }
    var options = CrashEnumeration()
    options.onlyNew = true
    options.subsetLimit = 5
    options.sampleCount = 8
    options.tornByteStride = .max
    CrashStates.judge(recording, place, options, from: call, thoroughStride: 32, &tally)
    return tally
  }
}
