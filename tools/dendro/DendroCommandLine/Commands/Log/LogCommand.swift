extension Command {
  static let log = Command(
    name: "log", summary: "show the writes of the log",
    discussion: """
      Prints every write that the log still holds: its number (LSN), time, operation, encoded bytes, place
      in the files, path and value. Where the log is damaged, it prints where, continues with the next
      record that can be read, and ends with exit code 2. Works beside a running writer.
      """,
    parameters: [.directory],
    options: [
      Option(name: "path", short: "p", value: "PATH", summary: "only writes that concern PATH"),
      Option(name: "since", value: "WHEN", summary: "from this LSN, or time (2026-11-21T04:00) on"),
      Option(name: "until", value: "WHEN", summary: "up to this LSN or time"),
      Option(name: "last", short: "l", value: "N", summary: "only the last N of them"),
      Option(name: "follow", short: "f", summary: "then each write as it comes, until Ctrl-C"),
      Option(name: "records", short: "r", summary: "the records that hold the writes instead"),
      .json,
    ],
    examples: [
      Example(line: "dendro log db --last 20", summary: "the newest writes"),
      Example(line: "dendro log db --path /users/ada", summary: "what happened there"),
      Example(line: "dendro log db --since 1200 --json", summary: "for programs, a line each"),
      Example(line: "dendro log db --last 5 --follow", summary: "and what comes after"),
      Example(line: "dendro log db --records", summary: "how the writes lie in the files"),
    ],
    run: { arguments in
      let printer = try LogPrinter(arguments)
      return try printer.run()
    })
}
