import DendroRules

/// One run of `rules check`.
struct RulesCheck {
  private let arguments: Arguments
  private let file: String

  init(_ arguments: Arguments) {
    self.arguments = arguments
    file = arguments.positional[1]
  }

  func run() throws -> ExitCode {
    let terminal = try Terminal(color: arguments.value("color"))
    let text = try RulesArguments.text(of: file)
    let result = Result { () throws(RuleTextError) in try Rules(text) }
    if arguments.wantsJSON {
      try terminal.print(Self.json(result).text)
      try terminal.flush()
      if case .failure = result { return .badInput }
      return .success
    }
    let rules: Rules
    switch result {
    case .success(let compiled): rules = compiled
    case .failure(let error): throw Failure(.badInput, "\(file):\(error)")
    }
    for warning in rules.warnings {
      try terminal.report(
        terminal.colored("\(file):\(warning.position): warning: ", .yellow)
          + warning.message.printable)
    }
    try terminal.report(
      terminal.colored(rules.warnings.isEmpty ? "good" : "they can be used", .green))
    try terminal.flush()
    return .success
  }

  private static func json(_ result: Result<Rules, RuleTextError>) -> JSONValue {
    switch result {
    case .success(let rules):
      .object([
        ("good", .bool(true)), ("error", .null),
        (
          "warnings",
          .array(
            rules.warnings.map { warning in
              .object(warning.position.members + [("message", .string(warning.message))])
            })
        ),
      ])
    case .failure(let error):
      .object([
        ("good", .bool(false)),
        ("error", .object(error.position.members + [("message", .string(error.message))])),
        ("warnings", .array([])),
      ])
    }
  }
}
