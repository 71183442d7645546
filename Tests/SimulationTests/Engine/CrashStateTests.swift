import DendroCrashHarness
import DendroTestSupport
import Testing

/// G1: the whole engine, crashed after every call that changed something.
@Suite struct CrashStateTests {
  @Test func everyCrashStateOfRandomWorkloads() async {
    await CrashStates.sweep.check(
      0..<UInt64(Scale.scaled(860)), goal: Scale.goal(1_000_000))
  }
}
