import DendroEngine
import DendroStorage
import DendroTree

/// Follows another process's writer, and prints every place that its writes change.
final class Watcher {
  private let arguments: Arguments
  private let location: Location
  private let terminal: Terminal
  private let lines: LogLines
  private let limit: Int
  private let interval: Int
  private let path: String
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
    var options = EngineOptions()
    // The looks are taken here, so that the writes of one are printed before the next.
    options.execution = .inline
    let progress = Progress("opening")
    let engine = try Engine.open(
      at: path, options: options, mode: .following, progress: progress.recovery)
    progress.clear()
    defer { try? engine.close() }
    let commits = FollowedCommits()
    engine.setObserver(commits)
    // From now on all states of the location are in memory.
    let first = try engine.view(at: location.path)
    lsn = engine.head.lsn
    if !arguments.has("changes-only") {
      try show(location.path, first, time: nil, type: "value")
      try terminal.flush()
    }
    while count < limit {
      let isMore: Bool
      do {
        isMore = try engine.follow()
      } catch {
        try show(commits)
        try terminal.flush()
        throw error
      }
      try show(commits)
      try terminal.flush()
      guard count < limit else { break }
      if Interruption.isRequested { return .interrupted }
      if !isMore { Interruption.sleep(milliseconds: interval) }
    }
    return .success
  }

  private func show(_ commits: FollowedCommits) throws {
    for commit in commits.take() {
      lsn = commit.lsn
      for change in commit.changes where count < limit {
        if location.path.isPrefix(of: change.path) {
          try compare(change.replaced, change.new, at: change.path, time: commit.time)
        } else if let below = location.path.relative(to: change.path) {
          try compare(
            change.replaced.node(at: below), change.new.node(at: below), at: location.path,
            time: commit.time)
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
