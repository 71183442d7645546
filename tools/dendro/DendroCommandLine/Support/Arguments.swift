/// The words of a command line, sorted by the table of the verb that they are for.
struct Arguments: Sendable {
  let command: Command
  private(set) var positional: [String] = []
  private var values: [String: String] = [:]
  /// The values of options that may stand there several times.
  private var lists: [String: [String]] = [:]
  private(set) var wantsHelp = false

  /// Options take their value as `--name value` or `--name=value`; `--` ends them. Letters of options may stand together, and
  /// a value behind the last one: `-n5`. A lone `-` and negative numbers are no options.
  init(_ words: some Sequence<String>, for command: Command) throws {
    self.command = command
    let options = command.options + [.color, .help]
    var rest = Array(words)[...]
    var optionsEnded = false
    while let word = rest.popFirst() {
      if optionsEnded || !word.hasPrefix("-") || word == "-" || Self.isNegativeNumber(word) {
        positional.append(word)
        continue
      }
      if word == "--" {
        optionsEnded = true
        continue
      }
      if word.hasPrefix("--") {
        let (option, attached) = try Self.find(word, in: options, of: command)
        if option.value == nil, attached != nil {
          throw Failure.usage("--\(option.name) takes no value")
        }
        try set(option, attached ?? (option.value == nil ? nil : rest.popFirst()))
        continue
      }
      var letters = word.dropFirst()
      while let letter = letters.popFirst() {
        let option = try Self.find(letter, in: options, of: command)
        if option.value == nil {
          guard letters.first != "=" else {
            throw Failure.usage("--\(option.name) takes no value")
          }
          try set(option, nil)
        } else {
          try set(option, letters.isEmpty ? rest.popFirst() : String(letters))
          break
        }
      }
    }
    guard !wantsHelp else { return }
    let required = command.parameters.prefix { !$0.isOptional }.count
    if positional.count < required {
      throw Failure.usage("\(command.parameters[positional.count].name) is missing")
    }
    if positional.count > command.parameters.count {
      throw Failure.usage(
        "there is one word too many: \(Failure.quoted(positional[command.parameters.count]))")
    }
    if command.parameters.first?.name == Command.Parameter.directory.name,
      positional.first?.isEmpty == true
    {
      // An unset variable in a script: it must not mean the working directory.
      throw Failure.usage("DIRECTORY is empty")
    }
  }

  /// - Parameter value: nil if there is none.
  private mutating func set(_ option: Command.Option, _ value: String?) throws {
    if option.name == "help" { return wantsHelp = true }
    guard let name = option.value else { return values[option.name] = "" }
    guard let value else { throw Failure.usage("--\(option.name) needs a value: \(name)") }
    values[option.name] = value
    lists[option.name, default: []].append(value)
  }

  private static func isNegativeNumber(_ word: String) -> Bool {
    guard let second = word.utf8.dropFirst().first else { return false }
    return second >= UInt8(ascii: "0") && second <= UInt8(ascii: "9")
  }

  private static func find(_ word: String, in options: [Command.Option], of command: Command) throws
    -> (Command.Option, attached: String?)
  {
    let parts = word.dropFirst(2).split(
      separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    if let option = options.first(where: { $0.name == name }) {
      return (option, parts.count > 1 ? String(parts[1]) : nil)
    }
    let near = suggestion(for: name, among: options.lazy.map(\.name))
    throw Failure.usage(
      "'\(command.name)' has no option \(Failure.quoted("--" + name))",
      hint: near.map { "did you mean --\($0)?" })
  }

  private static func find(
    _ letter: Character, in options: [Command.Option], of command: Command
  ) throws -> Command.Option {
    if let option = options.first(where: { $0.short == letter }) { return option }
    throw Failure.usage("'\(command.name)' has no option \(Failure.quoted("-\(letter)"))")
  }

  // MARK: Reading

  func has(_ option: Command.Option) -> Bool { values[option.name] != nil }
  func has(_ option: String) -> Bool { values[option] != nil }
  func value(_ option: String) -> String? { values[option] }
  /// All values of an option, in their order.
  func values(_ option: String) -> [String] { lists[option] ?? [] }

  /// The value of an option as a whole number in `range`.
  func integer<Integer: FixedWidthInteger>(_ option: String, in range: ClosedRange<Integer>) throws
    -> Integer?
  {
    guard let text = values[option] else { return nil }
    guard let value = Integer(text), range.contains(value) else {
      throw Failure.usage(
        "--\(option) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \(Failure.quoted(text))"
      )
    }
    return value
  }

  /// Puts a word in the place of a parameter, which may have been left out as the last one.
  mutating func setPositional(_ index: Int, _ word: String) {
    if index < positional.count { positional[index] = word } else { positional.append(word) }
  }

  mutating func setValue(_ option: String, _ value: String) { values[option] = value }

  var wantsJSON: Bool { has(.json) }
  var directory: String { positional[0] }

  /// DIRECTORY, absolute.
  func directoryPath() throws -> String { try Self.absolutePath(directory, "DIRECTORY") }

  /// - Parameter parameter: what the word is called in errors.
  static func absolutePath(_ word: String, _ parameter: String) throws -> String {
    guard !word.isEmpty else { throw Failure.usage("\(parameter) is empty") }
    guard !hasScheme(word) else {
      throw Failure.usage("\(parameter) is a path, not a URL: \(Failure.quoted(word))")
    }
    return word.hasPrefix("/") ? word : try "\(Platform.workingDirectory())/\(word)"
  }

  /// Whether a word begins as a URL does. No regular expression: its engine takes a millisecond to begin.
  private static func hasScheme(_ word: String) -> Bool {
    let scheme = word.prefix {
      $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "+" || $0 == "." || $0 == "-"
    }
    return scheme.first?.isLetter ?? false && word[scheme.endIndex...].hasPrefix("://")
  }

  func positional(_ index: Int) -> String? {
    index < positional.count ? positional[index] : nil
  }
}
