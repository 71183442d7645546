import CrashHarness
import Foundation
import Testing

/// The share of the work that is done: all of it in a release build, a little in a debug build,
/// and as much as `DENDRO_SIMULATION_SCALE` says where it is set.
enum Scale {
  static let share: Double = {
    if let text = ProcessInfo.processInfo.environment["DENDRO_SIMULATION_SCALE"],
      let scale = Double(text), scale > 0
    {
      return scale
    }
    #if DEBUG
      return 0.01
    #else
      return 1
    #endif
  }()

  /// `count` of the share; at least one.
  static func scaled(_ count: Int) -> Int { max(1, Int((Double(count) * share).rounded(.up))) }

  /// What the share has to reach of a goal: jobs differ, and few of them may all be small ones.
  static func goal(_ count: Int) -> Int { share < 1 ? 1 : scaled(count) }
}

extension Sweep {
  /// Runs the jobs, prints `"<name>: <count> <unit>, <seconds> s"`, and fails the test with the first
  /// failures, each as the command that shows it again, and where less was judged than `goal`.
  @discardableResult
  func check(
    _ range: Range<UInt64>? = nil, goal: Int = 1,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async -> Tally {
    let started = ContinuousClock.now
    let tally = await run(range)
    let seconds = (ContinuousClock.now - started).seconds
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
