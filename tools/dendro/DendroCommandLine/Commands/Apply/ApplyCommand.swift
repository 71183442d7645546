extension Command {
  static let apply = Command(
    name: "apply", summary: "make many writes, given as lines of JSON",
    discussion: """
      Reads what 'log --json' and 'diff --json' print, an object on each line:
        {"operation": "set", "path": "/users/ada", "value": {"name": "Ada"}}
        {"operation": "update", "path": "/", "entries": [{"path": "a/b", "operation": "set", "value": 1}]}
        {"operation": "remove", "path": "/users/bob"}
        {"operation": "increment", "path": "/count", "delta": 5}
        {"operation": "priority", "path": "/users/ada", "priority": 1}
      Other members are passed over. A line with "was" is only done if exactly that is what is there;
      null is nothing. Each line is a write of its own; with --chunk-size so many lines are one write, and
      with --atomic all of them: all or nothing. If a line is bad (exit code 65) or its "was" is not what
      is there (exit code 1), nothing of its write is done, and what was done before it stays and is said.
      If DIRECTORY is new or empty, a database is made there.
      """,
    parameters: [
      .directory, Parameter(name: "FILE", summary: "a file of lines; - is standard input"),
    ],
    options: [
      Option(name: "atomic", short: "a", summary: "one write: all or nothing"),
      Option(name: "chunk-size", value: "N", summary: "lines in one write, 1 if left out"),
      Option(name: "ignore-was", summary: "do each line, whatever is there"),
      .dryRun, .noCreate, .durability, .wait, .json,
    ],
    examples: [
      Example(line: "dendro log old --json | dendro apply new -", summary: "the same writes again"),
      Example(
        line: "dendro diff a --with b --json | dendro apply a - --atomic",
        summary: "make a equal to b"),
    ],
    run: { try Applier($0).run() })
}
