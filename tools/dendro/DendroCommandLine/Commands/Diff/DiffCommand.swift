import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let diff = Command(
    name: "diff", summary: "show how two states of the tree differ",
    discussion: """
      Prints each place below PATH in which the states differ: + what is only in the second, - what is only
      in the first, ~ what is another value. The states are those of one database at two points in time, or
      of two databases. Exit code 0 if they are equal, 1 if they differ, 69 if there is no database or a state is
      not kept.

      With --json it prints lines that 'apply' takes: they turn the first state into the second.
      """,
    parameters: [.directory, .optionalPath],
    options: [
      Option(
        name: "from", value: "WHEN",
        summary: "the first state: after this LSN, or at this time (UTC, '10 minutes ago')"),
      Option(name: "to", value: "WHEN", summary: "the second state; the present if left out"),
      Option(
        name: "with", value: "OTHER",
        summary: "the second state is of this directory; the first may be the present one then"),
      .json,
    ],
    examples: [
      Example(line: "dendro diff db --from 1200", summary: "what has changed since that write"),
      Example(
        line: "dendro diff db /users --from '1 day ago' --to '1 hour ago'", summary: "in between"),
      Example(line: "dendro diff db --with backup", summary: "two databases"),
      Example(
        line: "dendro diff db --to 1200 --from now --json | dendro apply db - --atomic",
        summary: "back to that state, as a new write"),
    ],
    run: { try Comparison($0).run() })

  static let compare = Command(
    name: "compare", summary: "whether two databases hold the same tree",
    discussion: """
      Compares the hashes of what is at PATH, and if they differ, says in which subtrees. Exit code 0
      if they are equal, 1 if they differ, 69 if there is no database or a state is not kept. 'diff' prints every
      difference.
      """,
    parameters: [
      .directory, Parameter(name: "OTHER", summary: "the other database's directory"),
      .optionalPath,
    ],
    options: [
      Option(
        name: "at", value: "WHEN", summary: "both as they were after this LSN or at this time"),
      .json,
    ],
    examples: [
      Example(line: "dendro compare db backup", summary: "whether a backup is up to date")
    ],
    run: { try Comparison(comparing: $0).run() })
}

/// Two states of a tree, side by side.
private struct Comparison {
  let arguments: Arguments
  let location: Location
  let old: HistoryState
  let new: HistoryState
  /// Whether only subtrees are named.
  let isBrief: Bool

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    isBrief = false
    location = try Self.location(arguments.positional(1))
    let from = try HistoryPoint(arguments, "from")
    let to = try HistoryPoint(arguments, "to")
    let path = try arguments.directoryPath()
    if let other = arguments.value("with") {
      let otherPath = try Arguments.absolutePath(other, "OTHER")
      old = try Self.states(of: path, at: [from])[0]
      new = try Self.states(of: otherPath, at: [to])[0]
    } else {
      guard from != nil || to != nil else {
        throw Failure.usage("--from is missing", hint: "or --with, for two databases")
      }
      let states = try Self.states(of: path, at: [from, to])
      (old, new) = (states[0], states[1])
    }
  }

  init(comparing arguments: Arguments) throws {
    self.arguments = arguments
    isBrief = true
    location = try Self.location(arguments.positional(2))
    let other = try Arguments.absolutePath(arguments.positional[1], "OTHER")
    let point = try HistoryPoint(arguments, "at")
    old = try Self.states(of: arguments.directoryPath(), at: [point])[0]
    new = try Self.states(of: other, at: [point])[0]
  }

  /// - Throws: what is no difference, with another code than those have.
  private static func states(of path: String, at points: [HistoryPoint?]) throws -> [HistoryState] {
    do {
      return try ReadState.states(of: path, at: points)
    } catch {
      var failure = Failure(describing: error)
      if failure.code == .problem { failure.code = .unavailable }
      throw failure
    }
  }

  private static func location(_ text: String?) throws -> Location {
    let location = try Location(text)
    guard !location.isPriority else {
      throw Failure(.badInput, "a priority has no places to compare; give the location that has it")
    }
    return location
  }

  func run() throws -> ExitCode {
    let terminal = try Terminal(color: arguments.value("color"))
    let first = old.root.node(at: location.path)
    let second = new.root.node(at: location.path)
    let isEqual = isBrief ? try compare(first, second, terminal) : try show(first, second, terminal)
    try terminal.flush()
    return isEqual ? .success : .problem
  }

  // MARK: diff

  private func show(_ first: Node, _ second: Node, _ terminal: Terminal) throws -> Bool {
    var count = 0
    var later: [TreeChange] = []
    let columns = Terminal.columns
    try TreeChange.between(first, second, at: location.path) { change in
      count += 1
      guard arguments.wantsJSON else {
        return try terminal.print(change.text(terminal, columns: columns))
      }
      if change.turn == 0 { return try terminal.print(change.json.text) }
      later.append(change)
    }
    for turn in 1...2 {
      for change in later where change.turn == turn { try terminal.print(change.json.text) }
    }
    if !arguments.wantsJSON {
      let states =
        "write \(old.lsn) and write \(new.lsn)"
        + (arguments.value("with").map { " of \($0)" } ?? "")
      Terminal.note(
        count == 0
          ? "dendro: no difference between \(states)"
          : "dendro: \(Format.count(count, "difference")) between \(states)")
    }
    return count == 0
  }

  // MARK: compare

  private func compare(_ first: Node, _ second: Node, _ terminal: Terminal) throws -> Bool {
    let hashes = (CheckpointCoding.contentHash(of: first), CheckpointCoding.contentHash(of: second))
    var differences: [(path: Path, count: Int)] = []
    try TreeChange.between(first, second, at: location.path) { change in
      // By the first two keys below PATH: the differences themselves are for `diff`.
      let path = change.path.prefix(min(change.path.count, location.path.count + 2))
      if differences.last?.path == path {
        differences[differences.count - 1].count += 1
      } else {
        differences.append((path, 1))
      }
    }
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object([
          ("equal", .bool(differences.isEmpty)),
          ("lsn", .unsigned(old.lsn.rawValue)), ("otherLSN", .unsigned(new.lsn.rawValue)),
          ("hash", .string(Survey.hash(hashes.0))), ("otherHash", .string(Survey.hash(hashes.1))),
          (
            "differences",
            .array(
              differences.map {
                .object([("path", .string("\($0.path)")), ("count", .count($0.count))])
              })
          ),
        ]).text)
    } else {
      try terminal.print("\(Survey.hash(hashes.0))  \(arguments.directory), write \(old.lsn)")
      try terminal.print("\(Survey.hash(hashes.1))  \(arguments.positional[1]), write \(new.lsn)")
      for (path, count) in differences {
        try terminal.print(
          "\(terminal.colored("\(path)", .cyan))  \(Format.count(count, "difference"))")
      }
      try terminal.print(
        differences.isEmpty
          ? terminal.colored("equal", .green) : terminal.colored("different", .red))
    }
    return differences.isEmpty
  }
}
