import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let hash = Command(
    name: "hash", summary: "print the hash of what is at a location",
    discussion: """
      Equal trees have the same hash on any machine, whatever writes have led to them; priorities count,
      and 1 is equal to 1.0. It is the one that 'verify', 'info' and checkpoints show for the whole tree.
      """,
    parameters: [.directory, .optionalPath],
    options: [.at, .salvage, .json],
    examples: [
      Example(line: "dendro hash db", summary: "of the whole tree"),
      Example(line: "dendro hash db /users --at 1200", summary: "as it was after that write"),
    ],
    run: { arguments in
      let state = try ReadState(arguments, path: arguments.positional(1))
      let hash = Survey.hash(CheckpointCoding.contentHash(of: state.node))
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(
          JSONValue.object([
            ("lsn", .unsigned(state.lsn.rawValue)),
            ("path", .string(state.location.description)),
            ("leaves", .count(state.node.leafCount())), ("hash", .string(hash)),
          ]).text)
      } else {
        try terminal.print(hash)
      }
      try terminal.flush()
      return .success
    })
}
