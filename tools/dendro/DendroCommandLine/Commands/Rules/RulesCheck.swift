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
    let diagnosis = RuleDiagnosis(text)
    if arguments.wantsJSON {
      try terminal.print(diagnosis.json)
      try terminal.flush()
      if case .failure = diagnosis.result { return .badInput }
      return .success
    }
    let rules: Rules
    switch diagnosis.result {
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
}
