extension Command {
  static let watch = Command(
    name: "watch", summary: "follow what changes at a location",
    discussion: """
      Prints the value at PATH, then every change as another process makes it: the number and the time of the
      write, the place that changed, and its new value (null: removed). Ends with Ctrl-C. The process that writes
      may turn segments, be killed and start again: no change is missed, none is shown twice.
      """,
    parameters: [.directory, .optionalPath],
    options: [
      Option(name: "count", short: "n", value: "N", summary: "end after N changes"),
      Option(name: "changes-only", short: "c", summary: "without the value at first"),
      Option(
        name: "interval", value: "MS", summary: "milliseconds between two looks at the log (100)"),
      .json,
    ],
    examples: [
      Example(line: "dendro watch db /messages", summary: "until Ctrl-C"),
      Example(line: "dendro watch db / --json --count 1", summary: "the next change, for a script"),
    ],
    run: { try Watcher($0).run() })
}
