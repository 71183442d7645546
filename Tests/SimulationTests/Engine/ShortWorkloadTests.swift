import DendroCrashHarness
import DendroTestSupport
import Testing

/// G2: every workload of up to three steps, crashed after every call in every listed state, the last
/// write torn at every byte.
@Suite struct ShortWorkloadTests {
  @Test func everyShortWorkload() async throws {
    let length = Scale.share < 1 ? 2 : 3
    #expect(ShortWorkloads.count(ofLengthUpTo: 3) == 2 * (6 + 36 + 216))
    let tally = await (try ShortWorkloads.sweep(length: length)).check(goal: 5000)
    #expect(tally.details["workloads"] == ShortWorkloads.count(ofLengthUpTo: length))
  }

  /// Each workload has one number, whatever the greatest length.
  @Test func numbersOfWorkloads() {
    let all = (0..<UInt64(ShortWorkloads.count(ofLengthUpTo: 3))).map(ShortWorkloads.workload)
    #expect(Set(all.map { "\($0)" }).count == all.count)
    #expect(all.map(\.kinds.count).max() == 3)
    #expect(ShortWorkloads.workload(UInt64(all.count)).kinds.count == 4)
  }
}
