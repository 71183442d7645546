import DendroCrashHarness
import DendroTestSupport
import Testing

/// G3: a crash while recovering from a crash, after each call of the recovery; and a third one
/// during the recovery from that.
@Suite struct RecoveryCrashTests {
  @Test func everyCrashWhileRecovering() async {
    let first: UInt64 = 1_000_000
    await RecoveryCrashes.sweep.check(
      first..<first + UInt64(Scale.scaled(170)), goal: Scale.goal(200_000))
  }
}
