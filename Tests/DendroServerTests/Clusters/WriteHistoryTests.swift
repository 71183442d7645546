import DendroTestSupport
import Testing

/// The judge of histories sees what it is there to see.
@Suite("judging what clients of several servers were told")
struct WriteHistoryTests {
  private let start = ContinuousClock.now
  private let order = WriteHistory.Order([1: 10, 2: 20, 3: 30])

  /// A history of operations with values, in milliseconds.
  private func history(
    _ operations: (Int, ClosedRange<Int>, WriteHistory.Operation.Outcome)...
  ) -> WriteHistory {
    let history = WriteHistory()
    for (value, time, outcome) in operations {
      history.add(
        .init(
          value, begun: start + .milliseconds(time.lowerBound),
          ended: start + .milliseconds(time.upperBound), outcome))
    }
    return history
  }

  @Test("what was told and what stands agree, or not")
  func outcomes() {
    let right = history(
      (1, 0...5, .acknowledged), (2, 1...3, .undecided), (3, 2...4, .acknowledged),
      (4, 3...4, .refused), (5, 3...4, .undecided))
    #expect(right.problem(in: order) == nil)
    #expect(right.acknowledgedCount == 2)
    #expect(
      history((4, 0...1, .acknowledged)).problem(in: order) == "4 was acknowledged and is lost")
    #expect(history((2, 0...1, .refused)).problem(in: order) == "2 was refused and stands")
  }

  @Test("a write that began after another one had ended comes after it")
  func time() {
    #expect(
      history((2, 0...5, .acknowledged), (1, 5...8, .acknowledged)).problem(in: order) == nil)
    let late = "1 began after 2 had ended, and comes before it"
    #expect(
      history((2, 0...5, .acknowledged), (1, 6...8, .acknowledged)).problem(in: order) == late)
    #expect(
      history((2, 0...5, .acknowledged), (1, 6...8, .undecided)).problem(in: order) == late)
    // When one ended that has no answer is not known.
    #expect(
      history((2, 0...5, .undecided), (1, 6...8, .acknowledged)).problem(in: order) == nil)
  }

  @Test("a session sees time go forward, and what stands")
  func sessions() {
    #expect(order.problem(ofSession: []) == nil)
    #expect(order.problem(ofSession: [1, 1, 3]) == nil)
    #expect(order.problem(ofSession: [1, 4]) == "4 was seen and does not stand")
    #expect(
      order.problem(ofSession: [1, 3, 2]) == "2 was seen after 3, and is older: 20 and 30")
  }

  @Test("the longest time without an acknowledgement")
  func pauses() {
    let history = history(
      (1, 0...5, .acknowledged), (2, 1...40, .acknowledged), (3, 1...60, .acknowledged),
      (4, 1...50, .refused))
    #expect(history.longestPause(since: start + .milliseconds(10)) == .milliseconds(30))
    #expect(history.longestPause(since: start + .milliseconds(70)) == .zero)
  }
}
