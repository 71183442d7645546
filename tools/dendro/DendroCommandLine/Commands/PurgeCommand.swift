import DendroEngine
import DendroStorage

extension Command {
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
      let session = try Session.writing(arguments, creates: false)
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
}
