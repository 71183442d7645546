import DendroCrashHarness
import DendroTestSupport
import Testing

/// What only many threads and the whole API show, on a simulated disk.
@Suite struct SoakTests {
  /// G11: random operations with listeners, transactions and queries, compared with the oracle, closed or
  /// released and reopened again and again.
  @Test func randomOperationsWithListeners() async {
    let tally = await Soak.sweep.check(
      0..<UInt64(Scale.scaled(200)), goal: Scale.scaled(1_000_000))
    #expect(tally.details["reopenings", default: 0] >= tally.count / 1000)
  }

  /// G18: concurrent calls happened one after the other, and listeners got their events so.
  @Test func concurrentCallsHaveOneOrder() async {
    await Histories.sweep.check(0..<UInt64(Scale.scaled(10_000)), goal: Scale.scaled(10_000))
  }
}
