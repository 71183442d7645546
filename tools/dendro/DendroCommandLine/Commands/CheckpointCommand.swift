import DendroEngine
import DendroStorage

extension Command {
  static let checkpoint = Command(
    name: "checkpoint", summary: "write the whole tree beside the log, so that opening is quick",
    discussion: """
      The history stays, unless --history says how much of it is kept: then segments and checkpoints that
      are needed neither for that nor for opening are removed. KEEP is all (default), none, writes:N,
      seconds:N or bytes:N.

      Opening needs two checkpoints and the log since the older one, in case that the newest is damaged.
      With none only the new checkpoint stays, which is read back before: the database is as small as it
      can be, and until the next checkpoint there is no second one. That is what 'dendro purge' does,
      and it waits as that does for readers and archives.
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
      let begin = Platform.uptime()
      let history = try HistoryRetention(arguments)
      let isAlone = history == .none
      let before = try byteCount(arguments)
      let session = try Session.writing(
        arguments, creates: false, history: isAlone ? .all : history, changesData: false)
      let progress = Progress("checkpoint")
      try session.closing {
        try session.engine.checkpoint()
        if isAlone { try session.engine.purgeHistory(Session.purge(arguments, since: begin)) }
      }
      let seconds = progress.seconds
      let statistics = session.engine.statistics()
      let after = try byteCount(arguments)
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("lsn", .unsigned(statistics.checkpointLSN.rawValue)),
            ("bytes", .unsigned(statistics.checkpointByteCount)), ("seconds", .number(seconds)),
            ("written", .bool(statistics.checkpointCount > 0)),
            ("bytesBefore", .unsigned(before)), ("bytesAfter", .unsigned(after)),
          ]).text)
      } else {
        if statistics.checkpointCount == 0 {
          try terminal.print("nothing was written since the last checkpoint")
        } else {
          try terminal.print(
            "checkpoint at write \(statistics.checkpointLSN): "
              + "\(Format.bytes(statistics.checkpointByteCount)) in \(Format.seconds(seconds))")
        }
        if history != .all {
          try terminal.print(
            "the database takes \(Format.bytes(after)), and took \(Format.bytes(before))")
        }
      }
      try terminal.flush()
      return .success
    })

  /// Of the segments and checkpoints; a file that another process removes meanwhile counts nothing.
  private static func byteCount(_ arguments: Arguments) throws -> UInt64 {
    let path = try arguments.directoryPath()
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .following)
    defer { directory.close() }
    let contents = try directory.contents()
    var count: UInt64 = 0
    for segment in contents.segments { count += (try? directory.byteCount(of: segment)) ?? 0 }
    for lsn in contents.checkpoints { count += (try? directory.byteCount(ofCheckpoint: lsn)) ?? 0 }
    return count
  }
}
