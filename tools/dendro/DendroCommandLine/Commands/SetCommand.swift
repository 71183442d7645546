import DendroEngine
import DendroTree

extension Command {
  static let set = Command(
    name: "set", summary: "replace what is at a location",
    discussion: """
      VALUE is JSON, also in export form ({".value": …, ".priority": …}); null removes. PATH may end in
      .priority. {".sv": "timestamp"} stands for the time of the write in milliseconds since 1970, and
      {".sv": {"increment": N}} for what is there plus N. Before the whole tree is removed, the command asks;
      without a terminal it needs --force. If DIRECTORY is new or empty, a database is made there.
      """,
    parameters: [.directory, .path, .value],
    options: [.string, .force, .noCreate, .durability, .wait, .json],
    examples: [
      Example(line: "dendro set db /users/ada '{\"name\": \"Ada\"}'", summary: "a subtree"),
      Example(line: "dendro set db /users/ada/name Ada --string", summary: "a string"),
      Example(line: "echo '[1, 2]' | dendro set db /list -", summary: "from standard input"),
      Example(line: "dendro set db /users/ada/.priority 5", summary: "a priority"),
      Example(line: "dendro set db /seen '{\".sv\": \"timestamp\"}'", summary: "the time"),
    ],
    run: { arguments in
      let location = try Location(writing: arguments.positional(1))
      let draft = try OneWrite.draft(at: location, arguments.positional[2], arguments)
      // A new database has nothing that could have a priority.
      let session = try Session.writing(arguments, at: location, creates: !location.isPriority)
      let lsn = try session.closing {
        if location.isPriority, try session.engine.view(at: location.path).isEmpty {
          throw Failure(
            .problem,
            "there is nothing at \("\(location.path)".shortened(to: 80)) that could have a priority"
          )
        }
        if case .remove(let path) = draft.write, path.isRoot {
          try Terminal.confirmRemovingAll(of: session.engine.view(at: .root), arguments)
        }
        return try session.write(draft)
      }
      try OneWrite.report(lsn, arguments)
      return .success
    })
}
