extension Command {
  static let log = Command(
    name: "log", summary: "show the writes of the log",
    discussion: """
      Prints every write that the log still holds: its number (LSN), time, operation, path and value, and in
      wide terminals its encoded bytes and its place in the files (the number of the segment and the offset
      of the record). A * behind the number: the write is not known to be durable yet. If the log is
      damaged, it prints where, continues with the next record that stands where it was written, and ends with
      exit code 2; 'repair' reads displaced records, too. With --last it reads from the end and looks at no more than
      that takes. Works beside a running writer.

      A PATTERN is a path whose keys may have wildcards: * for any part of a key, ** for any number of keys
      (\\* is the character). It stands for all writes at, above or below such a path.

      Beside the data the log has what a server keeps for its clients: no reader of the data sees it, and --system shows
      it. Bytes there are printed in hexadecimal.

      Times are UTC: 2026-11-21, '2026-11-21 04:00', 2026-11-21T04:00:12.5+02:00, now, '10 minutes ago'.
      """,
    parameters: [.directory],
    options: [
      Option(
        name: "path", short: "p", value: "PATTERN",
        summary: "only writes that concern it, as /users/*/name"),
      Option(
        name: "operation", short: "o", value: "NAMES",
        summary: "only these: set, update, remove, increment, priority; with commas between"),
      Option(
        name: "grep", short: "g", value: "TEXT", summary: "only with TEXT in the path or the value"),
      Option(name: "since", value: "WHEN", summary: "from this LSN or time on"),
      Option(name: "until", value: "WHEN", summary: "up to this LSN or time"),
      Option(name: "last", short: "l", value: "N", summary: "only the last N of them"),
      Option(name: "reverse", summary: "the newest first"),
      Option(name: "follow", short: "f", summary: "then each write as it comes, until Ctrl-C"),
      Option(name: "records", short: "r", summary: "the records that hold the writes instead"),
      Option(
        name: "system",
        summary:
          "what the server keeps beside the data, as what clients have registered for their end"),
      Option(
        name: "stats",
        summary: "only counts and bytes, by operation and by the first key of the path"),
      .json,
    ],
    examples: [
      Example(line: "dendro log db --last 20", summary: "the newest writes"),
      Example(line: "dendro log db --path '/users/*/name'", summary: "what happened there"),
      Example(line: "dendro log db --since '10 minutes ago' --grep ada", summary: "of late"),
      Example(
        line: "dendro log db -o remove --reverse", summary: "what was removed, the last first"),
      Example(line: "dendro log db --since 1200 --json", summary: "for programs, a line each"),
      Example(line: "dendro log db --last 5 --follow", summary: "and what comes after"),
      Example(line: "dendro log db --stats", summary: "what takes the room"),
      Example(line: "dendro log db --records", summary: "how the writes lie in the files"),
    ],
    run: { arguments in
      let request = try LogRequest(arguments)
      return try request.showsStatistics
        ? LogStatistics(request).run() : LogPrinter(request).run()
    })
}
