/// What became of tests.
public struct RuleTestReport: Sendable {
  /// What became of one case.
  public struct Result: Sendable {
    /// The case.
    public let `case`: RuleTests.Case
    /// What the rules said, with a trace.
    public let verdict: RuleVerdict

    /// Whether the rules said what was expected.
    public var isPassed: Bool { verdict.isAllowed == `case`.isExpectedAllowed }
  }

  /// One for each case, in the order of the text.
  public let results: [Result]
  /// How often rules and their parts were evaluated.
  public let coverage: RuleCoverage

  /// Whether every case passed.
  public var isPassed: Bool { results.allSatisfy(\.isPassed) }
}

extension RuleTestReport: CustomStringConvertible {
  /// A line for each case, with the trace of each that failed, and how many passed.
  public var description: String {
    var text = ""
    for result in results {
      let `case` = result.case
      text += "\(result.isPassed ? "ok  " : "FAIL")  \(`case`.name)\n"
      guard !result.isPassed, let trace = result.verdict.trace else { continue }
      text += "      expected to be \(`case`.isExpectedAllowed ? "allowed" : "denied"): "
      text += "\(`case`.operation.rawValue) \(`case`.path)\n"
      text += trace.description.split(separator: "\n").map { "      \($0)\n" }.joined()
    }
    return text + "\(results.filter(\.isPassed).count) of \(results.count) passed\n"
  }
}
