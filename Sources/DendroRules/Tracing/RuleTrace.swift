/// How a verdict came about: each rule that was evaluated, in that order.
public struct RuleTrace: Sendable {
  /// Whether the request is allowed.
  public let isAllowed: Bool
  /// The steps that the verdict took.
  public let stepCount: Int
  /// The rules with what became of them, at most 1,000. One that would have changed nothing was not evaluated.
  public let evaluations: [RuleEvaluation]
  /// How many evaluations were left out, since there were more than 1,000.
  public let omittedCount: Int

  static let evaluationCountMax = 1_000
  /// The most values of parts, of all evaluations together.
  static let stepCountMax = 10_000

  init(_ isAllowed: Bool, _ stepCount: Int, _ recorder: TraceRecorder) {
    self.isAllowed = isAllowed
    self.stepCount = stepCount
    evaluations = recorder.evaluations
    omittedCount = recorder.omittedCount
  }
}

/// One evaluation of a rule.
public struct RuleEvaluation: Sendable {
  /// What became of a rule.
  public enum Outcome: Hashable, Sendable {
    /// It is true.
    case `true`
    /// It is false.
    case `false`
    /// It failed, which counts as not true; the sentence says why.
    case failed(String)
  }

  /// The value of a part of the expression.
  public struct Step: Sendable {
    /// The part as it is written. A long one is cut.
    public let source: String
    /// Its place in the text of the rules.
    public let position: TextPosition
    /// The value as JSON; a snapshot as its location. Long ones are cut.
    public let value: String
    /// The number of the part among those of all rules.
    let span: Int
  }

  /// The location whose rule it is, as `/users/ann`.
  public let location: String
  /// The place of the rule in the rules, as `/users/$uid`.
  public let ruleLocation: String
  /// What the rule decides.
  public let kind: RuleKind
  /// The expression as it is written.
  public let source: String
  /// Its place in the text of the rules.
  public let position: TextPosition
  /// What became of it.
  public let outcome: Outcome
  /// The parts that were evaluated, inner ones first. What `&&`, `||` and `?:` left out is missing.
  public let steps: [Step]
  /// The number of the rule.
  let rule: Int
}

extension RuleEvaluation {
  init(
    _ program: RuleProgram, _ index: Int, _ source: String, location: String, outcome: Outcome,
    steps: [Step]
  ) {
    let rule = program.rules[index]
    self.location = location
    ruleLocation = program.location(of: rule.node)
    kind = rule.kind
    self.source = source
    position = rule.position
    self.outcome = outcome
    self.steps = steps
    self.rule = index
  }
}

extension RuleEvaluation.Step {
  static let scalarCountMax = 200

  init(_ program: RuleProgram, _ index: Int, span: Int, value: String) {
    let rule = program.rules[index]
    let range = program.spans[span].source
    // At most four bytes are a scalar.
    let start = rule.source[range].prefix(4 * Self.scalarCountMax)
    source = String(decoding: start, as: UTF8.self).cut(after: Self.scalarCountMax)
    position = program.positions.position(of: rule.offset(range.lowerBound))
    self.value = value
    self.span = span
  }
}
