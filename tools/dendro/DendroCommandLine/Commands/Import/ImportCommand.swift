extension Command {
  static let `import` = Command(
    name: "import", summary: "read a JSON or CSV file into the database",
    discussion: """
      Puts what the file holds at PATH, where nothing may be yet, nor a leaf above (or --replace). It is
      read and written in chunks, each of them one write: little of the text is in memory at once,
      readers see the tree grow, and if the file turns out to be bad, the chunks before stay. With
      --atomic it is one write, all or nothing. With --replace, a regular file is read and checked
      before anything is removed. Export form is understood: {".value": …, ".priority": …}. If a key
      comes twice in an object, the last one counts. A key that the rules forbid, or any other bad data,
      ends the import with its place in the file and exit code 65. If DIRECTORY is new or empty, a
      database is made there.

      FILE may also hold lines of JSON, or CSV with the names in its first line (--format, or .jsonl,
      .ndjson, .csv, .tsv): each record becomes a child of PATH. Its key is its number, 0, 1, 2, …, or
      what it has in the field --key. A key that comes twice ends the import, with the lines of both
      records, unless --last-wins says that the last one counts. In CSV what is written like a number,
      true or false becomes one; an empty field is left out.

      With --dry-run everything is checked as for the import, which needs the database for itself at the
      beginning, and nothing is changed.

      An import that was interrupted goes on with --continue: what is there already has to be in the file, and
      is not written again.
      """,
    parameters: [
      .directory, .path, Parameter(name: "FILE", summary: "a file; - is standard input"),
    ],
    options: [
      Option(name: "atomic", short: "a", summary: "one write: all or nothing"),
      Option(
        name: "replace", short: "r", summary: "remove what is at PATH, and a leaf above it"),
      Option(name: "continue", summary: "go on with an import that was interrupted"),
      Option(
        name: "format", value: "NAME",
        summary: "json, lines, csv or tsv; by the file's name if left out"),
      Option(name: "key", short: "k", value: "FIELD", summary: "the field that has a record's key"),
      Option(
        name: "last-wins", summary: "of records with the same key the last one counts"),
      Option(name: "strings", summary: "of CSV, every field as a string"),
      Option(
        name: "escape-keys",
        summary: "write what keys may not have, and %, as % and two digits: a.b becomes a%2Eb"),
      Option(
        name: "chunk-size", value: "BYTES", summary: "text in one write, 1048576 if left out"),
      .force, .dryRun, .noCreate, .durability, .wait, .json,
    ],
    examples: [
      Example(line: "dendro import db / cities.json", summary: "into a new database"),
      Example(line: "dendro import db /backup - < export.json", summary: "from a pipe"),
      Example(
        line: "dendro import db /cities cities.json --replace", summary: "instead of the old"),
      Example(
        line: "dendro import db /cities cities.csv --key name --escape-keys",
        summary: "a child for each line"),
    ],
    run: { try Importer($0).run() })
}
