import DendroEngine
import DendroStorage
import DendroTree

/// Follows the writer's log with a tree of its own: every write is applied to it, and the places that it
/// changed are printed.
final class Watcher {
  private let arguments: Arguments
  private let location: Location
  private let terminal: Terminal
  private let lines: LogLines
  private let limit: Int
  private let interval: Int
  private let path: String
  private var root = Node.empty
  private var lsn = LogSequenceNumber.zero
  private var count = 0

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    location = try Location(arguments.positional(1))
    guard !location.isPriority else {
      throw Failure(.badInput, "a priority cannot be watched; watch the location that has it")
    }
    terminal = try Terminal(color: arguments.value("color"))
    var lines = LogLines(terminal: terminal, isJSON: arguments.wantsJSON)
    lines.valueWidth = 100
    self.lines = lines
    limit = try arguments.integer("count", in: 1...Int.max) ?? .max
    interval = try arguments.integer("interval", in: 1...60_000) ?? 100
    path = try arguments.directoryPath()
  }

  func run() throws -> ExitCode {
    Interruption.listen()
    try load()
    if !arguments.has("changes-only") {
      try show(location.path, root.node(at: location.path), time: nil, type: "value")
      try terminal.flush()
    }
    let directory = try DatabaseDirectory.open(path, environment: .system, mode: .readOnly)
    defer { directory.close() }
    var cursor = LogCursor(directory, after: lsn, isLive: true)
    while count < limit {
      var failure: (any Error)?
      var isBroken = false
      while count < limit, failure == nil, !isBroken,
        try cursor.step({ item in
          switch item {
          case .segment: break
          case .problem: isBroken = true
          case .record(let record, _, let payload):
            guard let payload else {
              isBroken = true
              return
            }
            do { try self.follow(RecordWrites(record, payload)) } catch { failure = error }
          }
        })
      {}
      if let failure { throw failure }
      if isBroken {
        // The writer took back a batch that its disk refused, or the files are damaged, which opening
        // reports.
        let before = root.node(at: location.path)
        try load()
        try compare(before, root.node(at: location.path), at: location.path, time: nil)
        cursor = LogCursor(directory, after: lsn, isLive: true)
      }
      try terminal.flush()
      guard count < limit else { break }
      if Interruption.isRequested { return .interrupted }
      Interruption.sleep(milliseconds: interval)
    }
    try terminal.flush()
    return .success
  }

  private func load() throws {
    let engine = try Engine.open(at: path, mode: .readOnly)
    (root, lsn) = try engine.wholeHead()
    try engine.close()
  }

  private func follow(_ content: RecordWrites) throws {
    for logged in content.writes where logged.lsn > lsn {
      lsn = logged.lsn
      for change in root.apply(logged.write) where count < limit {
        if location.path.isPrefix(of: change.path) {
          try compare(change.replaced, change.new, at: change.path, time: logged.time)
        } else if let below = location.path.relative(to: change.path) {
          try compare(
            change.replaced.node(at: below), change.new.node(at: below), at: location.path,
            time: logged.time)
        }
      }
    }
  }

  private func compare(_ old: Node, _ new: Node, at path: Path, time: Int64?) throws {
    guard old != new, count < limit else { return }
    count += 1
    try show(
      path, new, time: time, type: new.isEmpty ? "removed" : old.isEmpty ? "added" : "changed")
  }

  private func show(_ path: Path, _ node: Node, time: Int64?, type: String) throws {
    if arguments.wantsJSON {
      try terminal.print(
        JSONValue.object([
          ("type", .string(type)), ("lsn", .unsigned(lsn.rawValue)),
          ("time", time.map { .integer($0) } ?? .null), ("path", .string("\(path)")),
          ("value", .node(node, JSONStyle(.value))),
        ]).text)
      return
    }
    let when = time.map(Format.time) ?? String(repeating: " ", count: 24)
    let color: Terminal.Color =
      switch type {
      case "added": .green
      case "removed": .red
      case "changed": .yellow
      default: .blue
      }
    try terminal.print(
      "\("\(lsn)".leftPadded(to: 8))  \(terminal.colored(when, .dim))  "
        + "\(terminal.colored(type.padded(to: 7), color))  \(terminal.colored("\(path)", .cyan))  "
        + lines.preview(node))
  }
}
