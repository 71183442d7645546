import DendroRules

/// One run of `rules test`.
struct RulesTest {
  private let arguments: Arguments

  init(_ arguments: Arguments) { self.arguments = arguments }

  func run() throws -> ExitCode {
    let rules = try RulesArguments.rules(in: arguments.positional[1])
    let file = arguments.positional[2]
    let text = try RulesArguments.text(of: file)
    let tests: RuleTests
    do throws(RuleTextError) {
      tests = try RuleTests(text)
    } catch {
      throw Failure(.badInput, "\(file):\(error)")
    }
    let report = tests.run(rules)
    let terminal = try Terminal(color: arguments.value("color"))
    if arguments.wantsJSON {
      try terminal.print(json(report).text)
    } else {
      try terminal.print(lines: report.description)
      if arguments.has("coverage") { try terminal.print(lines: report.coverage.description) }
    }
    try terminal.flush()
    return report.isPassed ? .success : .problem
  }

  private func json(_ report: RuleTestReport) -> JSONValue {
    let cases = report.results.map { result -> JSONValue in
      .object(
        [("name", .string(result.case.name)), ("passed", .bool(result.isPassed))]
          + [("allowed", .bool(result.verdict.isAllowed))] + result.case.position.members)
    }
    var members: [(String, JSONValue)] = [
      ("passed", .bool(report.isPassed)), ("cases", .array(cases)),
    ]
    if arguments.has("coverage") {
      members.append(("rules", .array(report.coverage.rules.map(\.json))))
    }
    return .object(members)
  }
}

extension RuleCoverage.RuleCount {
  fileprivate var json: JSONValue {
    .object([
      ("location", .string(ruleLocation)), ("kind", .string(kind.rawValue)),
      ("rule", rule.json), ("parts", .array(parts.map(\.json))),
    ])
  }
}

extension RuleCoverage.Count {
  fileprivate var json: JSONValue {
    .object(
      position.members + [
        ("source", .string(source)),
        (
          "values",
          .object(values.sorted { $0.key < $1.key }.map { ($0.key, .count($0.value)) })
        ),
      ])
  }
}
