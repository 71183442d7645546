import DendroStorage

extension Command {
  static let verify = Command(
    name: "verify", summary: "read everything and check it",
    discussion: """
      Reads every record and every checkpoint, replays the log, compares the tree with each checkpoint,
      checks that it keeps its own rules, and that the log leads back to the older of the last two
      checkpoints. Exit code 2 if anything is damaged, or missing as the other files show, also if the
      database can still be opened without it. What a crash left at the end of the log is no damage.
      Works beside a running writer, for what was written when it began. Bytes that the medium does not
      give back are damaged ones, and the rest is read.

      Files with parity are compared with it: a damaged file is said to be, and whether 'dendro repair' mends
      it by its parity; a damaged parity file is damage, too. Parity that is older than its file is none.

      With --quick, it reads and decompresses as much, and checks every checksum, the order of all records
      and files, and the indexes of checkpoints. So it finds all that a disk or a copy has done to the
      files. It does not look at the writes and the trees themselves: it does not find that a checkpoint
      whose checksums are right holds another tree than the log leads to.
      """,
    parameters: [.directory],
    options: [
      Option(name: "quick", short: "q", summary: "check the files, without replaying the log"),
      .json,
    ],
    examples: [
      Example(line: "dendro verify db && echo good", summary: "in a script"),
      Example(line: "dendro verify db --quick", summary: "after a copy, or each night"),
    ],
    run: { arguments in
      let directory = try DatabaseDirectory.open(
        arguments.directoryPath(), environment: .system, mode: .readOnly)
      defer { directory.close() }
      var verification = try Verification(directory, isQuick: arguments.has("quick"))
      try verification.run()
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(verification.json.text)
      } else {
        try verification.print(to: terminal)
      }
      try terminal.flush()
      return verification.damage.isEmpty ? .success : .damaged
    })
}
