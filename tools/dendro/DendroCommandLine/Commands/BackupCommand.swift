import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let backup = Command(
    name: "backup", summary: "copy the database as it is at one moment",
    discussion: """
      TARGET is a new directory; it becomes a database of its own. Works beside a running writer. If it is
      interrupted, no verb takes TARGET for a database; the next backup into it starts over.

      With --incremental, TARGET becomes an archive: it holds the log too, and the next backup into it copies only
      what is new. 'dendro restore' makes a database of any state that it holds. Verbs that read take it for
      DIRECTORY, those that write refuse it. If a later backup is interrupted, the archive is as good as before it.

      With --parity, each file gets a second one beside it, a fifteenth of its size and at least 4 KiB: 'dendro repair' mends any one
      damaged stretch of about a sixteenth of a file by it. An archive has parity without being asked for it, unless
      --no-parity is given.
      """,
    parameters: [
      .directory,
      Parameter(
        name: "TARGET",
        summary: "a directory that does not exist yet, or holds an unfinished backup"),
    ],
    options: [
      Option(
        name: "incremental", short: "i",
        summary: "into an archive: with the log, and only what is new since the last one"),
      .parity, .noParity, .json,
    ],
    examples: [
      Example(line: "dendro backup db /backups/today", summary: "of a live database"),
      Example(
        line: "dendro backup db /backups/db --incremental", summary: "again and again, as from cron"
      ),
    ],
    run: { arguments in
      if arguments.has("incremental") {
        let archiver = try Archiver(arguments, to: arguments.positional[1])
        return try archiver.runOnce()
      }
      let target = try Arguments.absolutePath(arguments.positional[1], "TARGET")
      guard !Platform.exists(target) || DatabaseDirectory.isUnfinishedBackup(target) else {
        throw Failure(.problem, "\(arguments.positional[1]) exists already")
      }
      let parity = try arguments.wantsParity(otherwise: false)
      let session = try Session.reading(arguments, path: nil)
      let progress = Progress("backup")
      try session.engine.backup(to: target, parity: parity)
      let seconds = progress.seconds
      let copy = try Engine.open(at: target, mode: .readOnly)
      let head = try copy.wholeHead()
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
