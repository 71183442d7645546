import DendroEngine
import DendroStorage
import DendroTree

/// Prints the writes or records of a log, and follows it.
final class LogPrinter {
  private let arguments: Arguments
  private let terminal: Terminal
  private var lines: LogLines
  private var filter = LogFilter()
  /// Nil once the writes that were there are printed: later ones are printed as they come.
  private var last: Int?
  private let showsRecords: Bool
  /// The newest lines, where only those are wanted: a ring.
  private var ring: [String] = []
  private var ringStart = 0
  private var count = 0
  private var isDamaged = false

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    terminal = try Terminal(color: arguments.value("color"))
    lines = LogLines(terminal: terminal, isJSON: arguments.wantsJSON)
    showsRecords = arguments.has("records")
    last = try arguments.integer("last", in: 1...1_000_000)
    if let path = arguments.value("path") { filter.path = try Location(path).path }
    let since = try Self.place(arguments, "since")
    let until = try Self.place(arguments, "until")
    guard since.lsn ?? 0 <= until.lsn ?? .max, since.time ?? .min <= until.time ?? .max else {
      throw Failure.usage("--since is later than --until")
    }
    filter.lsn = (since.lsn ?? 0)...(until.lsn ?? .max)
    filter.time = (since.time ?? .min)...(until.time ?? .max)
  }

  private static func place(_ arguments: Arguments, _ option: String) throws
    -> (lsn: UInt64?, time: Int64?)
  {
    switch try HistoryPoint(arguments, option) {
    case .lsn(let lsn): (lsn.rawValue, nil)
    case .time(let time): (nil, time)
    case nil: (nil, nil)
    }
  }

  func run() throws -> ExitCode {
    let directory = try DatabaseDirectory.open(
      arguments.directoryPath(), environment: .system, mode: .readOnly)
    defer { directory.close() }
    guard try !directory.contents().isEmpty else {
      throw Failure(.problem, "there is no database at \(arguments.directory)")
    }
    if !arguments.wantsJSON {
      try emit(
        terminal.colored(showsRecords ? LogLines.recordHeading : LogLines.heading, .bold),
        isHeading: true)
    }
    let isFollowing = arguments.has("follow")
    let cursor = LogCursor(
      directory, after: LogSequenceNumber(max(1, filter.lsn.lowerBound) - 1), isLive: isFollowing)
    if isFollowing { Interruption.listen() }
    try show(cursor)
    last = nil
    while isFollowing, !isDamaged {
      if Interruption.isRequested { return .interrupted }
      Interruption.sleep(milliseconds: 100)
      try show(cursor)
    }
    if count == 0, !isDamaged {
      Terminal.note("dendro: no such writes in the log")
      return .problem
    }
    return isDamaged ? .damaged : .success
  }

  /// Prints the log up to its present end.
  private func show(_ cursor: LogCursor) throws {
    var failure: (any Error)?
    do {
      while failure == nil {
        guard
          try cursor.step({ item in
            do { try self.take(item) } catch { failure = failure ?? error }
          })
        else { break }
      }
    } catch {
      // What was read so far is worth showing.
      try finish()
      throw error
    }
    if let failure { throw failure }
    try finish()
  }

  private func take(_ item: LogCursor.Item) throws {
    switch item {
    case .segment: break
    case .problem(let problem):
      if !problem.isTail { isDamaged = true }
      try emit(lines.line(problem), isHeading: true)
    case .record(let record, _, let payload):
      guard filter.admits(record) else { return }
      if showsRecords {
        guard filter.time.contains(record.baseTime) else { return }
        try emit(lines.line(record, isReadable: payload != nil))
        return
      }
      guard let payload else { return }
      let content = RecordWrites(record, payload)
      for write in content.writes where filter.admits(write) {
        try emit(lines.line(write, in: record))
      }
      if let problem = content.problem {
        isDamaged = true
        try emit(
          lines.line(
            LogCursor.Problem(
              path: record.segment.fileName, offset: record.offset, expected: "writes",
              found: problem)), isHeading: true)
      }
    }
  }

  private func emit(_ line: String, isHeading: Bool = false) throws {
    if isHeading { return try terminal.print(line) }
    count += 1
    guard let last else { return try terminal.print(line) }
    if ring.count < last {
      ring.append(line)
    } else {
      ring[ringStart] = line
      ringStart = (ringStart + 1) % last
    }
  }

  private func finish() throws {
    for index in ring.indices { try terminal.print(ring[(ringStart + index) % ring.count]) }
    ring = []
    ringStart = 0
    try terminal.flush()
  }
}
