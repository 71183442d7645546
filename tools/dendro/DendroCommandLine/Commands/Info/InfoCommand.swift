import DendroEngine
import DendroStorage

extension Command {
  static let info = Command(
    name: "info", summary: "what is in the directory: files, sizes, numbers, checkpoints",
    discussion: """
      Reads the headers of the files and the last segment, whatever the size of the rest: it does not say
      that a database is good. With --full it reads all of them: the leaves of the tree, the records and the
      compression of every segment, what is damaged there, and with which server the database keeps in step.
      If it meets damage, it prints as much as can be read, and ends with exit code 2. Works beside a running
      writer.
      """,
    parameters: [.directory],
    options: [
      Option(name: "full", summary: "read every record, and build the tree"),
      Option(
        name: "top", value: "N",
        summary: "also the N largest subtrees of the first two levels; builds the tree"),
      .json,
    ],
    examples: [Example(line: "dendro info db", summary: "for people; --json for programs")],
    run: { arguments in
      let directory = try DatabaseDirectory.open(
        arguments.directoryPath(), environment: .system, mode: .readOnly)
      defer { directory.close() }
      let limit = try arguments.integer("top", in: 1...10_000)
      var survey = try Survey(directory, isFull: arguments.has("full"))
      if let limit, !survey.isEmpty {
        let root =
          try survey.root ?? ReadState.states(of: arguments.directoryPath(), at: [nil])[0].root
        survey.largest = LargestSubtrees(of: root, limit: limit)
      }
      guard !survey.isEmpty else {
        throw Failure.noDatabase(at: arguments.directory)
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(survey.json.text)
      } else {
        try survey.print(to: terminal)
      }
      try terminal.flush()
      return survey.isDamaged ? .damaged : .success
    })
}
