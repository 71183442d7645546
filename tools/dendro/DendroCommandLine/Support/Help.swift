/// What `--help` prints, made from the table of verbs.
enum Help {
  static func overview(of commands: [Command], version: String) -> String {
    var text = """
      dendro \(version): a durable, observable tree database in a directory

      Usage: dendro VERB DIRECTORY [PATH] …

      Verbs:

      """
    let visible = commands.filter { !$0.isHidden }
    text += table(visible.map { ($0.name, $0.summary) })
    text += """

      Options:
      \(table([("-h, --help", "show this help, or a verb's"), ("--version", "show the version, and the format of the files")]))
      Examples:
        dendro import db / cities.json     a file into a new database
        dendro get db /cities/berlin       the value of one place
        dendro watch db /cities            every change from now on
        dendro log db --last 10            the last ten writes

      Exit codes: \(wrapped(exitCodes.map { "\($0.code) \($0.meaning)" }.joined(separator: "; ") + ".", to: 96, behind: 12))

      """
    return text
  }

  static let exitCodes: [(code: Int, meaning: String)] = [
    (0, "good"), (1, "nothing found, or a problem"), (2, "damaged database"), (64, "usage"),
    (65, "bad data"), (69, "unavailable"), (74, "input or output failed"),
    (75, "locked by another process"), (130, "interrupted"),
  ]

  /// The text in lines of at most `width` characters, the first of which has begun with `start`.
  static func wrapped(_ text: String, to width: Int, behind start: Int) -> String {
    var lines = [""]
    var room = width - start
    for word in text.split(separator: " ") {
      if !lines[lines.count - 1].isEmpty, lines[lines.count - 1].count + 1 + word.count > room {
        lines.append("")
        room = width
      }
      lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
    }
    return lines.joined(separator: "\n")
  }

  static func page(for command: Command) -> String {
    var text = "\(capitalized(command.summary)).\n\nUsage: \(usage(of: command))\n"
    if !command.discussion.isEmpty { text += "\n\(command.discussion)\n" }
    if !command.parameters.isEmpty {
      text += "\nParameters:\n" + table(command.parameters.map { ($0.name, $0.summary) })
    }
    text += "\nOptions:\n"
    text += table(
      (command.options + [.color, .help]).map { option in
        let short = option.short.map { "-\($0), " } ?? ""
        return ("\(short)--\(option.name)\(option.value.map { " " + $0 } ?? "")", option.summary)
      })
    if !command.examples.isEmpty {
      text += "\nExamples:\n" + table(command.examples.map { ($0.line, $0.summary) })
    }
    return text
  }

  static func usage(of command: Command) -> String {
    var words = ["dendro", command.name]
    words += command.parameters.map { $0.isOptional ? "[\($0.name)]" : $0.name }
    words.append("[options]")
    return words.joined(separator: " ")
  }

  /// Two columns; a long first entry gets a line of its own.
  private static func table(_ rows: [(String, String)]) -> String {
    let longest = 36
    let width = rows.map(\.0.count).filter { $0 <= longest }.max() ?? 0
    return rows.map { name, summary in
      let gap =
        name.count <= width
        ? String(repeating: " ", count: width - name.count + 2)
        : "\n" + String(repeating: " ", count: width + 4)
      return "  \(name)\(gap)\(summary)\n"
    }.joined()
  }

  static func capitalized(_ text: String) -> String {
    text.prefix(1).uppercased() + text.dropFirst()
  }
}
