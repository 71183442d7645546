extension Command {
  static let `import` = Command(
    name: "import", summary: "read a JSON file into the database",
    discussion: """
      Puts what the file holds at PATH, where nothing may be yet (or --replace). It is read and written in
      chunks, each of them one write: little of the text is in memory at once, readers see the tree grow,
      and where the file turns out to be bad, the chunks before stay. With --atomic it is one write, all or
      nothing. With --replace, a regular file is read and checked before anything is removed. Export form
      is understood: {".value": …, ".priority": …}. Where a key comes twice in an object, the last one
      counts. A key that the rules forbid, or any other bad data, ends the import with its place in the
      file and exit code 65. Where DIRECTORY is new or empty, a database is made there.
      """,
    parameters: [
      .directory, .path, Parameter(name: "FILE", summary: "a JSON file; - is standard input"),
    ],
    options: [
      Option(name: "atomic", short: "a", summary: "one write: all or nothing"),
      Option(name: "replace", short: "r", summary: "remove what is at PATH"),
      Option(
        name: "chunk-size", value: "BYTES", summary: "text in one write, 1048576 if left out"),
      .force, .dryRun, .noCreate, .durability, .wait, .json,
    ],
    examples: [
      Example(line: "dendro import db / cities.json", summary: "into a new database"),
      Example(line: "dendro import db /backup - < export.json", summary: "from a pipe"),
      Example(
        line: "dendro import db /cities cities.json --replace", summary: "instead of the old"),
    ],
    run: { try Importer($0).run() })
}
