import DendroRules

extension Command {
  static let rules = Command(
    name: "rules", summary: "check, test and explain security rules",
    discussion: """
      Rules are a JSON text as the Realtime Database has it, with comments: who may read and write what, and
      which data is valid.

      check FILE compiles them. An error is said with its line and column, in the words of the Realtime
      Database; so is what is allowed and probably not meant, as a rule that has no effect, or a database
      that everybody may write.

      test FILE TESTS judges each case of TESTS, a JSON text with "data", and "cases" with "name", "as" (null,
      or the claims of a token), "operation" (read, set, update, remove, setPriority), "path", "value",
      "query", "now" and "expect" (allow or deny). Of each that fails it prints the rules on the way. With
      --coverage also how often each rule was true, false, or failed.

      explain DIRECTORY [JSON] says what the rules of --rules would make of one request for the database's
      data: each rule on the way with the values of its parts, and the verdict.
      """,
    parameters: [
      Parameter(name: "ACTION", summary: "check, test or explain"),
      Parameter(name: "FILE", summary: "the rules; for explain the database's directory"),
      Parameter(
        name: "MORE", summary: "the tests; for explain the JSON that --write writes",
        isOptional: true),
    ],
    options: [
      Option(name: "rules", value: "FILE", summary: "for explain: the rules"),
      Option(
        name: "as", value: "CLAIMS",
        summary: "who asks: the claims of a token as JSON; nobody if left out"),
      Option(name: "read", value: "PATH", summary: "explain a reading"),
      Option(name: "write", value: "PATH", summary: "explain a set; of null, a removal"),
      Option(name: "now", value: "MS", summary: "the time in milliseconds since 1970"),
      Option(name: "coverage", summary: "for test: how often each rule was evaluated"), .json,
    ],
    examples: [
      Example(line: "dendro rules check rules.json", summary: "before they are used"),
      Example(line: "dendro rules test rules.json tests.json --coverage", summary: "in a build"),
      Example(
        line: #"dendro rules explain db --rules rules.json --as '{"uid":"ada"}' --write /a 1"#,
        summary: "why is it denied?"),
    ],
    run: { arguments in
      let action = arguments.positional[0]
      try RulesArguments.check(arguments, for: action)
      switch action {
      case "check": return try RulesCheck(arguments).run()
      case "test": return try RulesTest(arguments).run()
      default: return try RulesExplanation(arguments).run()
      }
    })
}

/// Which words and options belong to which action.
enum RulesArguments {
  private static let options: [String: Set<String>] = [
    "check": [], "test": ["coverage"], "explain": ["rules", "as", "read", "write", "now"],
  ]

  static func check(_ arguments: Arguments, for action: String) throws {
    guard let own = options[action] else {
      throw Failure.usage("ACTION is check, test or explain, not \(Failure.quoted(action))")
    }
    let others = options.values.reduce(into: Set<String>()) { $0.formUnion($1) }.subtracting(own)
    for option in others.sorted() where arguments.has(option) {
      throw Failure.usage("--\(option) is not for \(action)")
    }
    let count = arguments.positional.count
    switch action {
    case "check" where count > 2: throw Failure.usage("check takes one file")
    case "test" where count < 3: throw Failure.usage("the file of the tests is missing")
    default: break
    }
  }

  /// The text of a file of rules or of tests.
  static func text(of file: String) throws -> String {
    let input = try InputFile(file)
    let bytes = try input.readAll(limit: 16 << 20)
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Failure(.badInput, "\(input.name) is not UTF-8")
    }
    return text
  }

  /// - Throws: `Failure` with the place of the error.
  static func rules(in file: String) throws -> Rules {
    let text = try text(of: file)
    do throws(RuleTextError) {
      return try Rules(text)
    } catch {
      throw Failure(.badInput, "\(file):\(error)")
    }
  }
}

extension TextPosition {
  var members: [(String, JSONValue)] { [("line", .count(line)), ("column", .count(column))] }
}

extension Terminal {
  /// Prints a text of whole lines, which may quote what no terminal should get.
  func print(lines text: String) throws {
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      try print(String(line).printable)
    }
  }
}
