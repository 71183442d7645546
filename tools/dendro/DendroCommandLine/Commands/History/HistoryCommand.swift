import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let history = Command(
    name: "history", summary: "show every value that a location has had",
    discussion: """
      Prints a line for each write that changed what is at PATH or below it: its number (LSN), time and
      operation, and the value from then on. The first line is the oldest state that is kept. What
      retention has removed is not shown, and a note says where the history begins.

      Times are UTC: 2026-11-21, '2026-11-21 04:00', 2026-11-21T04:00+02:00, now, '10 minutes ago'.
      """,
    parameters: [.directory, .path],
    options: [
      Option(name: "since", value: "WHEN", summary: "from this LSN or time on"),
      Option(name: "until", value: "WHEN", summary: "up to this LSN or time"),
      Option(name: "last", short: "l", value: "N", summary: "only the last N changes"), .json,
    ],
    examples: [
      Example(line: "dendro history db /users/ada/age", summary: "all of its values"),
      Example(line: "dendro history db /config --last 3 --json", summary: "for programs"),
    ],
    run: { try PathHistory($0).run() })
}

/// The values of one location, one after the other.
private final class PathHistory {
  private let arguments: Arguments
  private let location: Location
  private let terminal: Terminal
  private let last: Int
  private var lines: [String] = []
  private var count = 0

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    location = try Location(arguments.positional(1))
    terminal = try Terminal(color: arguments.value("color"))
    last = try arguments.integer("last", in: 1...1_000_000) ?? .max
  }

  func run() throws -> ExitCode {
    let since = try HistoryPoint(arguments, "since")
    let until = try HistoryPoint(arguments, "until")
    let directory = try DatabaseDirectory.openMended(
      arguments.directoryPath(), environment: .system)
    defer { directory.close() }
    let walk = try HistoryWalk(directory, since: since)
    var node = Self.value(at: location, in: walk.baseRoot)
    if since == nil, walk.base > .zero, !node.isEmpty {
      try show(node, after: "kept", walk.base, time: walk.baseTime)
    }
    try walk.run(upTo: until) { write, changes, root in
      guard changes.contains(where: { $0.concerning(location.path) != nil }) else { return }
      let now = Self.value(at: location, in: root)
      guard now != node else { return }
      node = now
      let isWanted =
        switch since {
        case .lsn(let lsn): write.lsn >= lsn
        case .time(let time): write.time >= time
        case nil: true
        }
      if isWanted {
        try show(node, after: LogLines.operation(write.write), write.lsn, time: write.time)
      }
    }
    for line in lines { try terminal.print(line) }
    try terminal.flush()
    if let note = walk.note, !arguments.wantsJSON { Terminal.note("dendro: \(note)") }
    if count == 0 { Terminal.note("dendro: nothing has happened at \(location.description)") }
    return count == 0 ? .problem : .success
  }

  private static func value(at location: Location, in root: Node) -> Node {
    let node = root.node(at: location.path)
    return location.isPriority ? node.priority.map { Node($0) } ?? .empty : node
  }

  private func show(
    _ node: Node, after operation: String, _ lsn: LogSequenceNumber, time: Int64?
  ) throws {
    count += 1
    let line: String
    if arguments.wantsJSON {
      line =
        JSONValue.object([
          ("lsn", .unsigned(lsn.rawValue)), ("time", time.map { .integer($0) } ?? .null),
          ("operation", .string(operation)), ("path", .string(location.description)),
          ("value", node.isEmpty ? .null : .node(node, JSONStyle(.export))),
        ]).text
    } else {
      var lines = LogLines(terminal: terminal, isJSON: false)
      let layout = LogLayout(columns: Terminal.columns)
      lines.valueWidth = layout.room(besides: 0)
      line =
        "\(lsn)".leftPadded(to: layout.lsnWidth) + "  "
        + (layout.timeWidth > 0 ? terminal.colored(layout.time(time), .dim) + "  " : "")
        + operation.padded(to: LogLayout.operationWidth) + "  "
        + (node.isEmpty ? terminal.colored("null", .red) : lines.preview(node))
    }
    guard last < .max else { return try terminal.print(line) }
    lines.append(line)
    if lines.count > last { lines.removeFirst() }
  }
}
