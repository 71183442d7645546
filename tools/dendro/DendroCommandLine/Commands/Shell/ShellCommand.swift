extension Command {
  static let shell = Command(
    name: "shell", summary: "a prompt for one database",
    discussion: """
      Reads lines and does what they say; in a terminal with a history and completion by TAB, else from
      standard input, as a script. The database is opened once for all lines that read.

      Each verb of dendro that takes a DIRECTORY is a verb here, without it; a PATH is relative to the
      location of the prompt. Besides:
        cd [PATH]         go to a location; .. is the one above
        ls [PATH]         the children there
        tree [PATH] [N]   what is there, N levels deep (3)
        pwd               where the prompt is
        at [WHEN]         read as of an LSN or a time; at alone, the present again
        \\timing           print how long each line takes, or no longer
        help [VERB]       what there is
        quit              or the end of the input

      Words are separated by spaces; '…' and "…" hold them together. A line that begins with # is a
      comment. In a script, an error ends it with its exit code, and says the line.
      """,
    parameters: [.directory],
    examples: [
      Example(line: "dendro shell db", summary: "a prompt"),
      Example(line: "echo 'ls users' | dendro shell db", summary: "a script"),
    ],
    run: { try Shell($0).run() })
}
