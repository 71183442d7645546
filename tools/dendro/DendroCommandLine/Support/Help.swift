/// What `--help` prints, made from the table of verbs.
enum Help {
  /// The columns that help is filled to: those of the terminal, or of `COLUMNS`, else 80.
  static func columns(_ descriptor: Int32 = 1) -> Int {
    if Platform.isTerminal(descriptor) { return max(30, Platform.columnCount(descriptor)) }
    return max(30, Terminal.columns ?? 80)
  }

  static func overview(of commands: [Command], version: String, columns: Int) -> String {
    let visible = commands.filter { !$0.isHidden }
    let title = "dendro \(version): a durable, observable tree database in a directory"
    let codes =
      "Exit codes: "
      + ExitCodes.all.map { "\($0.code) \($0.meaning)" }.joined(separator: "; ") + "."
    return """
      \(title.filled(to: columns))

      Usage: dendro VERB DIRECTORY [PATH] …

      Verbs:
      \(table(visible.map { ($0.name, $0.summary) }, columns))
      Options:
      \(table([("-h, --help", "show this help, or a verb's"), ("--version", "show the version, and the format of the files")], columns))
      Examples:
      \(table([
        ("dendro import db / cities.json", "a file into a new database"),
        ("dendro get db /cities/berlin", "the value of one place"),
        ("dendro watch db /cities", "every change from now on"),
        ("dendro log db --last 10", "the last ten writes"),
      ], columns))
      \(codes.filled(to: columns, hanging: 2))

      """
  }

  static func page(for command: Command, columns: Int) -> String {
    let usage = "Usage: \(usage(of: command))".filled(to: columns, hanging: 2)
    var text = "\(capitalized(command.summary)).".filled(to: columns) + "\n\n\(usage)\n"
    if !command.discussion.isEmpty { text += "\n\(filled(command.discussion, columns))\n" }
    if !command.parameters.isEmpty {
      text += "\nParameters:\n" + table(command.parameters.map { ($0.name, $0.summary) }, columns)
    }
    text += "\nOptions:\n"
    text += table(
      (command.options + [.color, .help]).map { option in
        let short = option.short.map { "-\($0), " } ?? ""
        return ("\(short)--\(option.name)\(option.value.map { " " + $0 } ?? "")", option.summary)
      }, columns)
    if !command.examples.isEmpty {
      text += "\nExamples:\n" + table(command.examples.map { ($0.line, $0.summary) }, columns)
    }
    let codes = ExitCodes.rows(of: command).map { ("\($0.code)", $0.meaning) }
    return text + "\nExit codes:\n" + table(codes, columns)
  }

  /// The paragraphs of a discussion, filled. Lines that are indented stand for themselves.
  private static func filled(_ discussion: String, _ columns: Int) -> String {
    var lines: [String] = []
    var paragraph = ""
    func end() {
      if !paragraph.isEmpty { lines.append(paragraph.filled(to: columns)) }
      paragraph = ""
    }
    for line in discussion.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.isEmpty || line.hasPrefix("  ") {
        end()
        lines.append(String(line).filled(to: columns, hanging: hanging(line)))
      } else {
        paragraph += (paragraph.isEmpty ? "" : " ") + line
      }
    }
    end()
    return lines.joined(separator: "\n")
  }

  /// Where the second column of an indented line begins, or some more than the first.
  private static func hanging(_ line: Substring) -> Int {
    let indent = line.prefix { $0 == " " }.count
    guard let gap = line.dropFirst(indent).firstRange(of: "  ") else { return indent + 2 }
    return line.distance(
      from: line.startIndex, to: line[gap.lowerBound...].firstIndex { $0 != " " } ?? line.endIndex)
  }

  static func usage(of command: Command) -> String {
    var words = ["dendro", command.name]
    words += command.parameters.map { $0.isOptional ? "[\($0.name)]" : $0.name }
    words.append("[options]")
    return words.joined(separator: " ")
  }

  /// Two columns; a long first entry gets a line of its own.
  private static func table(_ rows: [(String, String)], _ columns: Int) -> String {
    let longest = min(36, columns / 2 - 4)
    let width = rows.map(\.0.count).filter { $0 <= longest }.max() ?? 0
    return rows.map { name, summary in
      let start = width + 4
      let isBeside = name.count <= width
      let summary = summary.filled(to: columns, behind: start, hanging: start)
      let gap = isBeside ? width - name.count + 2 : start
      return "  \(name)\(isBeside ? "" : "\n")\(String(repeating: " ", count: gap))\(summary)\n"
    }.joined()
  }

  static func capitalized(_ text: String) -> String {
    text.prefix(1).uppercased() + text.dropFirst()
  }
}
