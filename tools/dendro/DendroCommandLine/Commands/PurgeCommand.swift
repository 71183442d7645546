import DendroEngine
import DendroStorage

extension Command {
  static let purge = Command(
    name: "purge",
    summary: "remove the history: what was removed from the tree leaves the files, too",
    discussion: """
      Writes a checkpoint, reads it back, and deletes everything older: no state before it can be read
      any more. Files are deleted, not overwritten; backups keep what they hold. Refused while another
      process has the database open.
      """,
    parameters: [.directory],
    options: [.force, .wait, .json],
    examples: [Example(line: "dendro purge db --force", summary: "without a question")],
    run: { arguments in
      let session = try Session.writing(arguments, creates: false)
      let before = try session.engine.historyRange()
      try Terminal.confirm(
        "This removes the history that can be read, from write \(before.oldest) to \(before.newest).",
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
        try terminal.print("the history begins at write \(after.oldest) now")
      }
      try terminal.flush()
      return .success
    })
}
