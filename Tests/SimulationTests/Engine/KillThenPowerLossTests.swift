import DendroCrashHarness
import DendroTestSupport
import Testing

/// The process is killed at any call, the next one continues with the files that the system has in
/// memory, and then the power is lost.
@Suite struct KillThenPowerLossTests {
  @Test func everyKillThenEveryCrash() async throws {
    let sweep = try KillsThenPowerLoss.sweep()
    let count = sweep.jobs.count
    await sweep.check(every: Scale.stride(41), goal: Scale.goal(15 * count))
  }
}
