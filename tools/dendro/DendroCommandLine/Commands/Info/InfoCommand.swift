import DendroStorage

extension Command {
  static let info = Command(
    name: "info", summary: "what is in the directory: files, sizes, numbers, checkpoints",
    discussion: """
      Of a damaged database it prints as much as can be read, and ends with exit code 2. Works beside a
      running writer.
      """,
    parameters: [.directory],
    options: [.json],
    examples: [Example(line: "dendro info db", summary: "for people; --json for programs")],
    run: { arguments in
      let directory = try DatabaseDirectory.open(
        arguments.directoryPath(), environment: .system, mode: .readOnly)
      defer { directory.close() }
      let survey = try Survey(directory)
      guard !survey.isEmpty else {
        throw Failure(.problem, "there is no database at \(arguments.directory)")
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
