extension Command {
  static let repair = Command(
    name: "repair", summary: "save what can be read of a damaged database into a new directory",
    discussion: """
      Reads every record and every part of a checkpoint that proves itself by its own checksums, wherever
      it stands, and writes a new database with them in TARGET. DIRECTORY stays as it is. Every write
      keeps its number (LSN) and its time, and as much of the history is kept as is without a gap.

      If a file has parity beside it, as in an archive, its damaged blocks are mended first, in memory, and
      it is said which ones: one damaged stretch of about a sixteenth of the file costs nothing.

      Prints what was saved and what was not. A write is lost if its record cannot be read and no later
      checkpoint contains it; a part of a checkpoint is lost if its chunk cannot be read and no older
      checkpoint and log lead to it. If saved writes follow a lost one, the tree is one that never was:
      leaves that were not written again behind the lost write may be older than they should be, or may have
      been removed, and are counted by path as being in doubt; what the lost write added is missing. With
      --before-gap the last state that surely was is written.

      What can be read, but has no place in the new database, is written to TARGET-apart.jsonl: parts of a
      checkpoint that nothing leads to, and the writes of a second file under the same numbers, of which
      the one that the rest of the log confirms is saved.

      «Whole» means that no write is missing that the files prove. A log that was cut off cleanly behind
      a record looks like one that ended there: up to which write the end is proven is printed.

      On a terminal it asks before it writes. Exit code 0 if the tree is whole as far as the files say,
      also if states before a checkpoint are lost; 1 if something else was lost, 2 if nothing can be
      saved. If nothing is damaged, nothing is written.
      """,
    parameters: [
      .directory,
      Parameter(
        name: "TARGET", summary: "a directory that does not exist yet; not needed with --dry-run",
        isOptional: true),
    ],
    options: [
      Option(name: "dry-run", short: "n", summary: "only say what would be saved"),
      Option(
        name: "before-gap", summary: "only the last state that surely was, without any doubt"),
      Option(name: "force", short: "f", summary: "do not ask on a terminal"), .json,
    ],
    examples: [
      Example(line: "dendro repair db --dry-run", summary: "what could be saved"),
      Example(line: "dendro repair db saved", summary: "into the new directory 'saved'"),
      Example(line: "dendro log db --json > writes.jsonl", summary: "each write that can be read"),
    ],
    run: { try Repairer($0).run() })
}
