import DendroCrashHarness
import DendroTestSupport
import Testing

/// The process is killed at any call, the next one goes on with what the system still has in
/// memory, and then the power is lost.
@Suite struct KillThenPowerLossTests {
  @Test func everyKillThenEveryCrash() async throws {
    let sweep = try KillsThenPowerLoss.sweep()
    let count = sweep.jobs.count
    // More than the share of the others: the kills at the workload's beginning have little to lose.
    await sweep.check(
      0..<UInt64(min(count, Scale.scaled(10 * count))), goal: Scale.goal(15 * count))
  }
}
