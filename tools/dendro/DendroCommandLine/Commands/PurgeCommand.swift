import DendroEngine
import DendroStorage

extension Command {
  static let purge = Command(
    name: "purge",
    summary: "remove the history: what was removed from the tree leaves the files, too",
    discussion: """
      Writes a checkpoint, reads it back, and deletes everything older: no state before it can be read
      any more. Files are deleted, not overwritten; backups and archives keep what they hold. In a
      directory with parity, what is deleted loses its own, and the checkpoint gets one.

      Refused while another process writes the database. It waits 10 seconds, or as long as --wait says,
      for processes that read it, and for archives that are being extended ('dendro archive') until they
      have copied all that it removes; then it ends with exit code 75, and the archives have lost
      nothing. An archive that no process extends at the moment is not known to it: extend that one
      before ('dendro backup --incremental'), or it has to be begun anew. Those that follow the database
      (watch, log --follow) are not waited for.
      """,
    parameters: [.directory],
    options: [.force, .wait, .json],
    examples: [Example(line: "dendro purge db --force", summary: "without a question")],
    run: { arguments in
      let begin = Platform.uptime()
      let session = try Session.writing(arguments, creates: false, changesData: false)
      let before = try session.engine.historyRange()
      try Terminal.confirm(
        "This removes the history that can be read, from write \(before.oldest) to \(before.newest).",
        force: arguments.has(.force))
      let after = try session.closing {
        try session.engine.purgeHistory(Session.purge(arguments, since: begin))
        return try session.engine.historyRange()
      }
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
