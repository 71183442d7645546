extension Command {
  static let archive = Command(
    name: "archive", summary: "copy the log elsewhere as it is written",
    discussion: """
      Extends the archive DIR until Ctrl-C or SIGTERM: begins it with the checkpoints and the log that there are, then
      copies each segment of the log as soon as it is sealed. Works beside a running writer, which may end, be killed
      and start again meanwhile; it keeps the log for the archive, up to 256 MiB. 'dendro restore' makes a database of
      any state that the archive holds; verbs that read take it for DIRECTORY.

      Beside each file it writes the file's parity, a fifteenth of its size and at least 4 KiB: 'dendro repair' mends any one damaged
      stretch of about a sixteenth of a file by it. --no-parity leaves that out.
      """,
    parameters: [.directory],
    options: [
      Option(name: "to", value: "DIR", summary: "the archive; made if it is missing"),
      Option(
        name: "interval", value: "SECONDS",
        summary: "copy what is not sealed yet so often, and at the end (10; 0: at the end only)"),
      .parity, .noParity, .json,
    ],
    examples: [
      Example(line: "dendro archive db --to /mnt/archive", summary: "until it is ended"),
      Example(
        line: "dendro archive db --to /mnt/archive --interval 1",
        summary: "so that at most a second of writes is missing after a loss of the machine"),
    ],
    run: { arguments in
      guard let target = arguments.value("to") else { throw Failure.usage("--to is missing") }
      let interval = try arguments.integer("interval", in: 0...86_400) ?? 10
      return try Archiver(arguments, to: target).run(
        interval: interval == 0 ? nil : interval * 1000)
    })
}
