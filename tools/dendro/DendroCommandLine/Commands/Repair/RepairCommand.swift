extension Command {
  static let repair = Command(
    name: "repair", summary: "save what can be read of a damaged database into a new directory",
    discussion: """
      Reads every record and every checkpoint that is whole, and writes a new database with them in TARGET.
      DIRECTORY stays as it is. Every write keeps its number (LSN) and its time, and as much of the
      history is kept as is without a gap.

      Prints what was saved and what was not. A write is lost if its record cannot be read and no later
      checkpoint contains it. If saved writes follow a lost one, the tree is one that never was: leaves
      that were not written again behind the lost write may be older than they should be, and are
      counted by path as being in doubt.

      On a terminal it asks before it writes. Exit code 0 if the tree is as it was at the last write, 1
      if writes were lost, 2 if nothing can be saved. If nothing is damaged, nothing is written.
      """,
    parameters: [
      .directory,
      Parameter(
        name: "TARGET", summary: "a directory that does not exist yet; not needed with --dry-run",
        isOptional: true),
    ],
    options: [
      Option(name: "dry-run", short: "n", summary: "only say what would be saved"),
      Option(name: "force", short: "f", summary: "do not ask on a terminal"), .json,
    ],
    examples: [
      Example(line: "dendro repair db --dry-run", summary: "what could be saved"),
      Example(line: "dendro repair db saved", summary: "into the new directory 'saved'"),
      Example(line: "dendro log db --json > writes.jsonl", summary: "each write that can be read"),
    ],
    run: { try Repairer($0).run() })
}
