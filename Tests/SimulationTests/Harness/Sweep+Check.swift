import DendroCrashHarness
import Testing

extension Sweep {
  /// Runs the jobs, prints `"<name>: <count> <unit>, <seconds> s"`, and fails the test with the first
  /// failures, each as the command that shows it again, and if less was judged than `goal`.
  ///
  /// - Parameter stride: how far apart the jobs are that are run; see `Scale.stride`.
  @discardableResult
  func check(
    _ range: Range<UInt64>? = nil, every stride: Int = 1, goal: Int = 1,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async -> Tally {
    let tally = await run(range, every: stride)
    let seconds = tally.duration.seconds
    print(
      "\(name): \(grouped(tally.count)) \(unit)\(tally.detailText), \(Int(seconds.rounded())) s")
    for failure in tally.failures.prefix(12) {
      Issue.record(Comment(rawValue: "\(failure)"), sourceLocation: sourceLocation)
    }
    if let first = tally.failures.first {
      let short = Shrinker().shrink(first, of: self)
      let words = short.reproduction.words.joined(separator: " ")
      Issue.record(
        "made short: \(short)\nonce mended, into Tests/Fixtures/PastSeeds.txt: \(words)",
        sourceLocation: sourceLocation)
    } else {
      #expect(tally.count >= goal, "\(name)", sourceLocation: sourceLocation)
    }
    return tally
  }
}
