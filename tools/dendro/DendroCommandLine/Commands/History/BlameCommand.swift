import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let blame = Command(
    name: "blame", summary: "show which write last changed each leaf",
    discussion: """
      Prints each leaf at PATH and below it with the number (LSN), time and operation of the write that gave
      it its value. Leaves that have had theirs since before the history begins, which retention decides,
      have none. If nothing is there, it says whether there ever was.
      """,
    parameters: [.directory, .optionalPath],
    options: [.at, .json],
    examples: [
      Example(line: "dendro blame db /users/ada", summary: "who changed what, leaf by leaf"),
      Example(line: "dendro blame db /config --at '1 day ago'", summary: "as it was then"),
    ],
    run: { try Blame($0).run() })
}

/// The leaves of a subtree with the writes that changed them last.
private final class Blame {
  private struct Origin {
    var time: Int64
    var operation: String
  }

  private let arguments: Arguments
  private let location: Location
  private let terminal: Terminal
  /// The subtree, and another one of the same shape whose leaves are numbers of writes.
  private var values = Node.empty
  private var numbers = Node.empty
  private var origins: [Int64: Origin] = [:]
  /// The write that has removed what was there; nil if nothing was.
  private var removal: (lsn: LogSequenceNumber, origin: Origin)?

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    location = try Location(arguments.positional(1))
    guard !location.isPriority else {
      throw Failure(.badInput, "'history' shows the writes of a priority")
    }
    terminal = try Terminal(color: arguments.value("color"))
  }

  func run() throws -> ExitCode {
    let directory = try DatabaseDirectory.openMended(
      arguments.directoryPath(), environment: .system)
    defer { directory.close() }
    let walk = try HistoryWalk(directory)
    values = walk.baseRoot.node(at: location.path)
    numbers = Self.numbered(values, 0)
    try walk.run(upTo: HistoryPoint(arguments, "at")) { write, changes, root in
      var isConcerned = false
      for change in changes {
        guard let (path, old, new) = change.concerning(location.path) else { continue }
        isConcerned = true
        let relative = path.dropFirst(location.path.count)
        try TreeChange.between(old, new, at: relative) { change in
          // A priority of a branch belongs to none of its leaves.
          if change.kind == .value { note(write, at: change.path, change.new) }
        }
      }
      guard isConcerned else { return }
      values = root.node(at: location.path)
      if values.isEmpty {
        let origin = Origin(time: write.time, operation: LogLines.operation(write.write))
        removal = (write.lsn, origin)
      }
    }
    try show(location.path, values, numbers)
    try terminal.flush()
    if let note = walk.note, !arguments.wantsJSON { Terminal.note("dendro: \(note)") }
    guard values.isEmpty else { return .success }
    Terminal.note("dendro: \(absence(isWhole: walk.note == nil))")
    return .problem
  }

  /// Why there is no leaf to show.
  private func absence(isWhole: Bool) -> String {
    let place = location.description
    guard let removal else {
      return isWhole
        ? "\(place) has never had a value"
        : "\(place) has had no value since the history begins"
    }
    let (lsn, origin) = removal
    return "\(place) has no value: write \(lsn) (\(origin.operation), "
      + "\(Format.time(origin.time))) has removed it"
  }

  private func note(_ write: LoggedWrite, at path: Path, _ new: Node) {
    let number = Int64(write.lsn.rawValue)
    if new.isEmpty {
      _ = numbers.apply(.remove(path))
    } else {
      _ = numbers.apply(.set(path, Self.numbered(new, number)))
      origins[number] = Origin(time: write.time, operation: LogLines.operation(write.write))
    }
  }

  /// A tree of the same shape whose leaves are all the number.
  private static func numbered(_ node: Node, _ number: Int64) -> Node {
    guard node.isBranch else { return node.isEmpty ? node : Node(.integer(number)) }
    var builder = NodeBuilder()
    for (key, child) in node.children { builder.append(key, numbered(child, number)) }
    return builder.finish(priority: nil)
  }

  private func show(_ path: Path, _ node: Node, _ number: Node) throws {
    if node.isEmpty { return }
    if node.isBranch {
      for (key, child) in node.children {
        try show(path.appending(key), child, number.child(key))
      }
      return
    }
    var lsn: Int64 = 0
    if case .integer(let value) = number.scalar { lsn = value }
    let origin = origins[lsn]
    if arguments.wantsJSON {
      return try terminal.print(
        JSONValue.object([
          ("path", .string("\(path)")), ("lsn", origin == nil ? .null : .integer(lsn)),
          ("time", origin.map { .integer($0.time) } ?? .null),
          ("operation", origin.map { .string($0.operation) } ?? .null),
          ("value", .node(node, JSONStyle(.export))),
        ]).text)
    }
    var lines = LogLines(terminal: terminal, isJSON: false)
    let name = "\(path)".printable
    let layout = LogLayout(columns: Terminal.columns)
    lines.valueWidth = layout.room(besides: name.columnCount + 2)
    try terminal.print(
      (origin == nil ? "-" : "\(lsn)").leftPadded(to: layout.lsnWidth) + "  "
        + (layout.timeWidth > 0 ? terminal.colored(layout.time(origin?.time), .dim) + "  " : "")
        + (origin?.operation ?? "").padded(to: LogLayout.operationWidth) + "  "
        + terminal.colored(name, .cyan) + "  " + lines.preview(node))
  }
}
