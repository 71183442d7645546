import DendroEngine
import DendroStorage
import DendroTree

/// Counts the writes of a log and their bytes, by operation and by the first key of their paths.
final class LogStatistics {
  private struct Sum {
    var writes = 0
    var rawBytes: UInt64 = 0
    /// The share of the records in the files: of a record's bytes, headers included, as much as of its raw ones.
    var storedBytes: Double = 0

    mutating func add(_ write: LoggedWrite, _ share: Double) {
      writes += 1
      rawBytes += UInt64(write.byteCount)
      storedBytes += Double(write.byteCount) * share
    }

    mutating func add(_ other: Sum) {
      writes += other.writes
      rawBytes += other.rawBytes
      storedBytes += other.storedBytes
    }

    var json: [(String, JSONValue)] {
      [
        ("writes", .count(writes)), ("rawBytes", .unsigned(rawBytes)),
        ("storedBytes", .unsigned(UInt64(storedBytes.rounded()))),
      ]
    }
  }

  private let request: LogRequest
  private let terminal: Terminal
  private var total = Sum()
  private var operations: [String: Sum] = [:]
  private var paths: [Path: Sum] = [:]
  /// Of first keys beyond the limit.
  private var others = Sum()
  private var problems: [LogCursor.Problem] = []
  private var first: LoggedWrite?
  private var last: LoggedWrite?
  private var isBehind = false

  /// Bounds the memory if every write has another first key.
  private static let pathLimit = 100_000
  /// As many as the text shows.
  private static let rowLimit = 20

  init(_ request: LogRequest) throws {
    self.request = request
    terminal = try Terminal(color: request.arguments.value("color"))
  }

  func run() throws -> ExitCode {
    let directory = try request.openDirectory()
    defer { directory.close() }
    let progress = Progress("reading")
    let cursor = LogCursor(directory, after: try request.start(directory))
    while !isBehind, try cursor.step({ self.take($0, progress) }) {}
    progress.clear()
    try show()
    if total.writes == 0, problems.isEmpty {
      Terminal.note("dendro: no such writes in the log")
      return .problem
    }
    return problems.contains { !$0.isTail } ? .damaged : .success
  }

  private func take(_ item: LogCursor.Item, _ progress: Progress) {
    switch item {
    case .segment: break
    case .problem(let problem): problems.append(problem)
    case .record(let record, _, let payload):
      if request.filter.isBehind(record) { isBehind = true }
      guard let payload, request.filter.admits(record) else { return }
      progress.update(
        record.endOffset, of: nil,
        "\(Format.count(total.writes, "write")), \(record.segment.fileName)")
      let raw = max(1, record.header.rawByteCount)
      let share = Double(record.endOffset - record.offset) / Double(raw)
      for write in request.filter.wanted(RecordWrites(record, payload).writes) {
        add(write, share)
      }
    }
  }

  private func add(_ write: LoggedWrite, _ share: Double) {
    first = first ?? write
    last = write
    total.add(write, share)
    operations[LogLines.operation(write.write), default: Sum()].add(write, share)
    let path = Self.top(write.write)
    if paths[path] != nil || paths.count < Self.pathLimit {
      paths[path, default: Sum()].add(write, share)
    } else {
      others.add(write, share)
    }
  }

  /// The first key of the path; of an update at the root, that of all of its entries.
  private static func top(_ write: Write) -> Path {
    if case .update(let base, let entries) = write, base.isRoot, let first = entries.first?.path {
      let path = first.prefix(min(1, first.count))
      return entries.allSatisfy { $0.path.prefix(min(1, $0.path.count)) == path } ? path : .root
    }
    return write.path.prefix(min(1, write.path.count))
  }

  // MARK: Report

  /// The largest first.
  private func sorted(_ sums: [(name: String, sum: Sum)]) -> [(name: String, sum: Sum)] {
    sums.sorted { a, b in
      a.sum.rawBytes == b.sum.rawBytes ? a.name < b.name : a.sum.rawBytes > b.sum.rawBytes
    }
  }

  private func show() throws {
    let operations = sorted(self.operations.map { ($0.key, $0.value) })
    let paths = sorted(self.paths.map { ("\($0.key)", $0.value) })
    if request.arguments.wantsJSON {
      var members = total.json
      members += [
        ("firstLSN", first.map { .unsigned($0.lsn.rawValue) } ?? .null),
        ("lastLSN", last.map { .unsigned($0.lsn.rawValue) } ?? .null),
        ("firstTime", first.map { .integer($0.time) } ?? .null),
        ("lastTime", last.map { .integer($0.time) } ?? .null),
        (
          "operations",
          .array(operations.map { .object([("operation", .string($0.name))] + $0.sum.json) })
        ),
        ("paths", .array(paths.map { .object([("path", .string($0.name))] + $0.sum.json) })),
        ("others", .object(others.json)), ("problems", .array(problems.map { .string("\($0)") })),
      ]
      try terminal.print(JSONValue.object(members).text)
      return try terminal.flush()
    }
    if let first, let last {
      try terminal.print(
        "writes \(first.lsn) to \(last.lsn), \(Format.time(first.time)) to \(Format.time(last.time))"
      )
    }
    try table("OPERATION", operations)
    var rows = Array(paths.prefix(Self.rowLimit))
    var rest = others
    for row in paths.dropFirst(Self.rowLimit) { rest.add(row.sum) }
    if rest.writes > 0 { rows.append(("(others)", rest)) }
    try terminal.print()
    try table("PATH", rows)
    let lines = LogLines(terminal: terminal, isJSON: false)
    for problem in problems { try terminal.report(lines.line(problem)) }
    try terminal.flush()
  }

  private func table(_ heading: String, _ rows: [(name: String, sum: Sum)]) throws {
    let width = min(40, max(9, rows.map(\.name.columnCount).max() ?? 0))
    func row(_ name: String, _ cells: [String]) -> String {
      name.truncated(toColumns: width).paddedToColumns(width)
        + cells.map { "  " + $0.leftPadded(to: 12) }.joined()
    }
    try terminal.print(
      terminal.colored(row(heading, ["WRITES", "RAW", "STORED"]), .bold))
    for (name, sum) in rows + [("total", total)] {
      try terminal.print(
        row(
          name,
          [
            Format.count(sum.writes), Format.bytes(sum.rawBytes),
            Format.bytes(UInt64(sum.storedBytes.rounded())),
          ]))
    }
  }
}
