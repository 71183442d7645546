import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let checkpoint = Command(
    name: "checkpoint", summary: "write the whole tree beside the log, so that opening is quick",
    discussion: """
      The past stays, unless --history says how much of it: then segments and checkpoints that are
      needed neither for that nor for opening are removed. KEEP is all (default), none, writes:N, seconds:N
      or bytes:N.
      """,
    parameters: [.directory],
    options: [
      Option(name: "history", value: "KEEP", summary: "how much of the past stays (all)"), .json,
    ],
    examples: [
      Example(line: "dendro checkpoint db", summary: "now instead of by itself"),
      Example(line: "dendro checkpoint db --history none", summary: "and give room back"),
    ],
    run: { arguments in
      let session = try Session.writing(
        arguments, path: nil, create: false, history: try HistoryRetention(arguments))
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

  static let purge = Command(
    name: "purge", summary: "remove the past: what was removed from the tree, from the files too",
    discussion: """
      Writes a checkpoint, reads it back, and deletes everything older: no state before it can be read
      any more. Files are deleted, not overwritten; backups keep what they hold. Refused while another
      process has the database open.
      """,
    parameters: [.directory],
    options: [.force, .json],
    examples: [Example(line: "dendro purge db --force", summary: "unasked")],
    run: { arguments in
      let session = try Session.writing(arguments, path: nil, create: false)
      let before = try session.engine.historyRange()
      try Terminal.confirm(
        "This removes what can be read of the past, from write \(before.oldest) to \(before.newest).",
        force: arguments.has(.force))
      try session.engine.purgeHistory()
      let after = try session.engine.historyRange()
      try session.close()
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("oldestBefore", .unsigned(before.oldest.rawValue)),
            ("oldest", .unsigned(after.oldest.rawValue)),
          ]).text)
      } else {
        try terminal.print("the past begins at write \(after.oldest) now")
      }
      try terminal.flush()
      return .success
    })

  static let backup = Command(
    name: "backup", summary: "copy the database as it is at one moment",
    discussion: """
      TARGET is a new directory; it becomes a database of its own. Works beside a running writer.
      """,
    parameters: [
      .directory, Parameter(name: "TARGET", summary: "a directory that does not exist yet"),
    ],
    options: [.json],
    examples: [Example(line: "dendro backup db /backups/today", summary: "of a live database")],
    run: { arguments in
      let target = Platform.absolutePath(arguments.positional[1])
      guard !Platform.exists(target) else {
        throw Failure(.problem, "\(arguments.positional[1]) exists already")
      }
      let session = try Session.reading(arguments, path: nil)
      let progress = Progress("backup")
      try session.engine.backup(to: target)
      let seconds = progress.seconds
      let copy = try Engine.open(at: target, mode: .readOnly)
      let head = copy.head
      let leaves = head.root.leafCount()
      try copy.close()
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("target", .string(arguments.positional[1])), ("lsn", .unsigned(head.lsn.rawValue)),
            ("leaves", .count(leaves)), ("seconds", .number(seconds)),
          ]).text)
      } else {
        try terminal.print(
          "\(Format.count(leaves, "leaf")) as of write \(head.lsn) in \(Format.seconds(seconds)); "
            + "read back and good")
      }
      try terminal.flush()
      return .success
    })
}
