extension Command {
  static let manual = Command(
    name: "manual", summary: "print the manual page",
    discussion: """
      It is made from the same table as --help, and written for man: what the Debian package installs as
      dendro(1). Its date is that of the release, or of SOURCE_DATE_EPOCH (seconds since 1970).
      """,
    examples: [
      Example(line: "dendro manual | man -l -", summary: "to read"),
      Example(line: "dendro manual > dendro.1", summary: "to install"),
    ],
    run: { _ in
      let terminal = try Terminal(color: nil)
      try terminal.print(
        Manual.page(
          of: CommandLineTool.commands.filter { !$0.isHidden }, version: CommandLineTool.version,
          date: Manual.date))
      try terminal.flush()
      return .success
    })
}

/// The manual page, for troff's `man` macros.
private enum Manual {
  /// The day that the page is of, as `2026-11-21`.
  static var date: String {
    let epoch = Platform.environment("SOURCE_DATE_EPOCH").flatMap { Int64($0) }
    let seconds = epoch.flatMap { (0...253_402_300_799).contains($0) ? $0 : nil }
    return String(Format.time((seconds ?? CommandLineTool.releaseDate) * 1000).prefix(10))
  }

  static func page(of commands: [Command], version: String, date: String) -> String {
    var lines = [
      ".TH DENDRO 1 \"\(date)\" \(quoted("dendro \(version)")) \"User Commands\"",
      ".SH NAME", "dendro \\- a durable, observable tree database in a directory",
      ".SH SYNOPSIS", ".B dendro", ".I VERB DIRECTORY", ".RI [ PATH ]", ".RI [ options ]",
      ".SH DESCRIPTION",
      escaped(
        "dendro reads and writes the directories of Dendro databases: a tree of data, the log of its writes, and checkpoints of it. Data is printed on standard output, everything else on standard error."
      ), ".SH VERBS",
    ]
    for command in commands {
      lines.append(".SS \(quoted(String(Help.usage(of: command).dropFirst(7))))")
      lines.append(escaped(Help.capitalized(command.summary) + "."))
      if !command.discussion.isEmpty { lines += [".PP"] + paragraphs(command.discussion) }
      for parameter in command.parameters {
        lines += [".TP", ".I \(escaped(parameter.name))", escaped(parameter.summary)]
      }
      lines += command.options.flatMap(entry)
      for example in command.examples {
        lines += [
          ".PP", escaped(Help.capitalized(example.summary) + ":"), ".RS 4", ".nf",
          escaped(example.line), ".fi", ".RE",
        ]
      }
      if let problem = ExitCodes.rows(of: command).first(where: { $0.code == 1 }) {
        lines += [".PP", escaped("Exit code 1: \(problem.meaning).")]
      }
    }
    lines += [".SH OPTIONS", "Every verb takes these too."]
    lines += [Command.Option.color, .help].flatMap(entry)
    lines.append(".SH EXIT STATUS")
    for (code, meaning) in ExitCodes.all {
      lines += [".TP", ".B \(code)", escaped(meaning)]
    }
    lines += [
      ".SH ENVIRONMENT", ".TP", ".B NO_COLOR",
      "If it is set and not empty, nothing is coloured.",
      ".TP", ".B COLUMNS",
      "The width that tables are fitted to if standard output is no terminal.",
    ]
    return lines.joined(separator: "\n")
  }

  /// A text whose lines are filled, but for those that are indented: they stand as they are.
  private static func paragraphs(_ text: String) -> [String] {
    var lines: [String] = []
    var isIndented = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("  ") != isIndented {
        isIndented.toggle()
        lines += isIndented ? [".PP", ".RS 2", ".nf"] : [".fi", ".RE", ".PP"]
      }
      if line.isEmpty {
        if lines.last != ".PP" { lines.append(".PP") }
      } else {
        lines.append(escaped(isIndented ? String(line.dropFirst(2)) : String(line)))
      }
    }
    return lines + (isIndented ? [".fi", ".RE"] : [])
  }

  private static func entry(_ option: Command.Option) -> [String] {
    let short = option.short.map { "\\-\($0), " } ?? ""
    let value = option.value.map { " \\fI\(escaped($0))\\fR" } ?? ""
    return [
      ".TP", "\\fB\(short)\\-\\-\(escaped(option.name))\\fR\(value)", escaped(option.summary),
    ]
  }

  /// Text that troff prints as it stands.
  private static func escaped(_ text: String) -> String {
    var text = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
      .replacing("…", with: "...").replacing("→", with: "\\(->")
    if text.hasPrefix(".") || text.hasPrefix("'") { text = "\\&" + text }
    return text
  }

  private static func quoted(_ text: String) -> String {
    "\"" + escaped(text).replacing("\"", with: "\\(dq") + "\""
  }
}
