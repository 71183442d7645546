/// How often rules and their parts were evaluated, and with what result.
public struct RuleCoverage: Sendable {
  /// The results of a rule or of a part of its expression.
  public struct Count: Sendable {
    /// What was counted, as it is written.
    public let source: String
    /// Its place in the text of the rules.
    public let position: TextPosition
    /// Each value that it had, as JSON, and how often; a failed rule counts under `error`. Values beyond the
    /// first 20 count under `…`.
    public internal(set) var values: [String: Int] = [:]

    /// How often it was evaluated.
    public var evaluationCount: Int { values.values.reduce(0, +) }
  }

  /// One rule.
  public struct RuleCount: Sendable {
    /// The place of the rule in the rules, as `/users/$uid`.
    public let ruleLocation: String
    /// What it decides.
    public let kind: RuleKind
    /// How often the rule was `true`, `false`, or failed with an `error`.
    public internal(set) var rule: Count
    /// The parts of its expression, inner ones first.
    public internal(set) var parts: [Count]
    let firstSpan: Int
  }

  /// One line of the text that has a rule or a part of one.
  public struct Line: Sendable {
    /// Counted from 1.
    public let number: Int
    /// The rules and parts that begin on it.
    public let count: Int
    /// How many of them were evaluated at least once.
    public let evaluatedCount: Int
  }

  /// All rules, in the order of the text.
  public private(set) var rules: [RuleCount]

  init(_ program: RuleProgram) {
    rules = program.rules.indices.map { RuleCount(program, $0) }
  }

  mutating func add(_ trace: RuleTrace) {
    for evaluation in trace.evaluations {
      rules[evaluation.rule].rule.add(evaluation.outcome.name)
      for step in evaluation.steps {
        rules[evaluation.rule].parts[step.span - rules[evaluation.rule].firstSpan].add(step.value)
      }
    }
  }

  /// The lines in their order.
  public var lines: [Line] {
    var counts: [Int: (all: Int, evaluated: Int)] = [:]
    for count in rules.flatMap({ [$0.rule] + $0.parts }) {
      counts[count.position.line, default: (0, 0)].all += 1
      if count.evaluationCount > 0 { counts[count.position.line, default: (0, 0)].evaluated += 1 }
    }
    return counts.sorted { $0.key < $1.key }.map {
      Line(number: $0.key, count: $0.value.all, evaluatedCount: $0.value.evaluated)
    }
  }
}

extension RuleCoverage.RuleCount {
  fileprivate init(_ program: RuleProgram, _ index: Int) {
    let rule = program.rules[index]
    ruleLocation = program.location(of: rule.node)
    kind = rule.kind
    self.rule = RuleCoverage.Count(
      source: String(decoding: rule.source, as: UTF8.self), position: rule.position)
    parts = rule.spans.map { span in
      let step = RuleEvaluation.Step(program, index, span: span, value: "")
      return RuleCoverage.Count(source: step.source, position: step.position)
    }
    firstSpan = rule.spans.lowerBound
  }
}

extension RuleCoverage.Count {
  fileprivate mutating func add(_ value: String) {
    let isKnown = values[value] != nil || values.count < 20
    values[isKnown ? value : "…", default: 0] += 1
  }
}

extension RuleEvaluation.Outcome {
  fileprivate var name: String {
    switch self {
    case .true: "true"
    case .false: "false"
    case .failed: "error"
    }
  }
}

extension RuleCoverage: CustomStringConvertible {
  /// A line for each rule: its place, and how often it was true, false or failed.
  public var description: String {
    rules.map { count in
      let values = count.rule.values
      return "\(count.rule.position)  \(count.ruleLocation) \(count.kind.rawValue): "
        + "true \(values["true"] ?? 0), false \(values["false"] ?? 0), "
        + "error \(values["error"] ?? 0)\n"
    }.joined()
  }
}
