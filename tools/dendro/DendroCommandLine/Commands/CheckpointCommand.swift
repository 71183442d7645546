import DendroEngine
import DendroStorage

extension Command {
  static let checkpoint = Command(
    name: "checkpoint", summary: "write the whole tree beside the log, so that opening is quick",
    discussion: """
      The history stays, unless --history says how much of it is kept: then segments and checkpoints that
      are needed neither for that nor for opening are removed. KEEP is all (default), none, writes:N,
      seconds:N or bytes:N.
      """,
    parameters: [.directory],
    options: [
      Option(name: "history", value: "KEEP", summary: "how much of the history is kept (all)"),
      .wait, .json,
    ],
    examples: [
      Example(line: "dendro checkpoint db", summary: "now instead of by itself"),
      Example(line: "dendro checkpoint db --history none", summary: "and give room back"),
    ],
    run: { arguments in
      let session = try Session.writing(
        arguments, creates: false, history: try HistoryRetention(arguments))
      let progress = Progress("checkpoint")
      try session.engine.checkpoint()
      let seconds = progress.seconds
      let statistics = session.engine.statistics()
      try session.close()
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("lsn", .unsigned(statistics.checkpointLSN.rawValue)),
            ("bytes", .unsigned(statistics.checkpointByteCount)), ("seconds", .number(seconds)),
            ("written", .bool(statistics.checkpointCount > 0)),
          ]).text)
      } else if statistics.checkpointCount == 0 {
        try terminal.print("nothing was written since the last checkpoint")
      } else {
        try terminal.print(
          "checkpoint at write \(statistics.checkpointLSN): "
            + "\(Format.bytes(statistics.checkpointByteCount)) in \(Format.seconds(seconds))")
      }
      try terminal.flush()
      return .success
    })
}
