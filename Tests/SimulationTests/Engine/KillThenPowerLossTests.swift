import CrashHarness
import Testing

/// The process is killed at any call, the next one goes on with what the system still has in
/// memory, and then the power is lost.
@Suite struct KillThenPowerLossTests {
  @Test func everyKillThenEveryCrash() async throws {
    let sweep = try KillsThenPowerLoss.sweep()
    await sweep.check(goal: 15 * sweep.jobs.count)
  }
}
