import DendroCrashHarness
import DendroTestSupport
import Testing

/// G2: every workload of up to three steps, crashed after every call in every listed state, the last
/// write torn at every byte.
@Suite struct ShortWorkloadTests {
  @Test func everyShortWorkload() async throws {
    let count = ShortWorkloads.count(ofLengthUpTo: 3)
    #expect(count == 2 * (6 + 36 + 216))
    let stride = Scale.stride(29)
    let tally = await (try ShortWorkloads.sweep(length: 3)).check(every: stride, goal: 5000)
    #expect(tally.details["workloads"] == (count + stride - 1) / stride)
  }

  /// Each workload has one number, whatever the greatest length.
  @Test func numbersOfWorkloads() {
    let all = (0..<UInt64(ShortWorkloads.count(ofLengthUpTo: 3))).map(ShortWorkloads.workload)
    #expect(Set(all.map { "\($0)" }).count == all.count)
    #expect(all.map(\.kinds.count).max() == 3)
    #expect(ShortWorkloads.workload(UInt64(all.count)).kinds.count == 4)
  }
}
