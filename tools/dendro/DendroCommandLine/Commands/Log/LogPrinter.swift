import DendroEngine
import DendroStorage
import DendroTree

/// Prints the writes or records of a log, and follows it.
final class LogPrinter {
  private let request: LogRequest
  private let terminal: Terminal
  private var lines: LogLines
  private var durability: LogDurability
  /// Whether a line is printed as soon as it is there.
  private var isStreaming = true
  /// Lines that wait: of a part that is printed backwards, or the newest of those so far.
  private var waiting: [String] = []
  /// The number of the first write of each of these.
  private var waitingLSNs: [LogSequenceNumber] = []
  private var count = 0
  private var isDamaged = false
  private var hasMarks = false
  private var isBehind = false
  /// The directory that is followed, and the last write that was read of it.
  private var followed: DatabaseDirectory?
  private var reached = LogSequenceNumber.zero

  init(_ request: LogRequest) throws {
    self.request = request
    terminal = try Terminal(color: request.arguments.value("color"))
    lines = LogLines(terminal: terminal, isJSON: request.arguments.wantsJSON)
    lines.layout = LogLayout(columns: Terminal.columns)
    lines.isOfSecondRoot = request.filter.isOfSecondRoot
    durability = LogDurability()
  }

  func run() throws -> ExitCode {
    let directory = try request.openDirectory()
    defer { directory.close() }
    let lease = try directory.lease()
    defer { lease?.end() }
    durability = try LogDurability(directory)
    if !request.arguments.wantsJSON {
      try terminal.report(
        terminal.colored(request.showsRecords ? LogLines.recordHeading : lines.heading, .bold),
        hanging: 12)
    }
    var start = try request.start(directory)
    if request.last != nil || request.isReversed {
      let first = try showBackward(directory, after: start)
      // What follows is read forward, from the first line on: writes may come meanwhile.
      if let first { start = max(start, first.previous) }
    }
    if request.isFollowing {
      let ended = try follow(directory, after: start, lease)
      if let ended { return ended }
    } else if request.last == nil, !request.isReversed {
      try showForward(LogCursor(directory, after: start))
    }
    try terminal.flush()
    if hasMarks { Terminal.note("dendro: * is not known to be durable yet") }
    if count == 0, !isDamaged {
      Terminal.note("dendro: no such writes in the log")
      return .problem
    }
    return isDamaged ? .damaged : .success
  }

  // MARK: Ways through the log

  /// Prints the log up to its present end.
  private func showForward(_ cursor: LogCursor) throws {
    var failure: (any Error)?
    do {
      while failure == nil, !isBehind || request.isFollowing {
        guard
          try cursor.step({ item in
            do { try self.take(item) } catch { failure = failure ?? error }
          })
        else { break }
      }
    } catch {
      // What was read so far is worth showing.
      try terminal.flush()
      throw error
    }
    if let failure { throw failure }
    try terminal.flush()
  }

  /// Prints the last lines, or all of them the newest first. If the log is followed, only finds the first
  /// of the last ones.
  ///
  /// - Returns: the first write that was found.
  private func showBackward(_ directory: DatabaseDirectory, after start: LogSequenceNumber) throws
    -> LogSequenceNumber?
  {
    isStreaming = false
    defer { isStreaming = true }
    var parts: [[String]] = []
    var first: LogSequenceNumber?
    var rest = request.last ?? .max
    try BackwardLog(directory: directory, outline: durability.outline).read(
      after: start, { try self.take($0) },
      endPart: {
        let wanted = waiting.suffix(rest)
        if !wanted.isEmpty { first = waitingLSNs.suffix(rest).first }
        rest -= wanted.count
        if request.isReversed {
          for line in wanted.reversed() { try terminal.print(line) }
        } else {
          parts.append(Array(wanted))
        }
        waiting = []
        waitingLSNs = []
        return rest > 0
      })
    if request.isFollowing {
      count = 0
    } else {
      for line in parts.reversed().joined() { try terminal.print(line) }
    }
    return first
  }

  /// - Parameter lease: ends once the writer knows which files are needed.
  private func follow(
    _ directory: DatabaseDirectory, after start: LogSequenceNumber, _ lease: ReadLease?
  ) throws -> ExitCode? {
    Interruption.listen()
    let first = try directory.contents().segments.first?.firstLSN ?? start.next
    reached = max(start, first.previous)
    let position = try directory.publishPosition(reached)
    lease?.end()
    followed = directory
    let cursor = LogCursor(directory, after: start, isLive: true)
    var unreadableCount = 0
    while true {
      try showForward(cursor)
      position?.move(to: reached)
      unreadableCount = cursor.unreadableOffset == nil ? 0 : unreadableCount + 1
      // No record that is being written: damage, or the remains of a crash.
      if unreadableCount == 2, try cursor.isPassedOver() {
        try showForward(LogCursor(directory, after: reached))
      }
      guard !isDamaged else { return nil }
      if Interruption.isRequested { return .interrupted }
      Interruption.sleep(milliseconds: 100)
    }
  }

  /// Shows that the writer has removed writes in front of `next` before they were read.
  ///
  /// - Returns: false if none are missing.
  private func showRemoved(before next: LogSequenceNumber) throws -> Bool {
    guard next > reached.next else { return false }
    try emit(lines.line(removed: reached.next.rawValue...next.previous.rawValue), nil)
    reached = next.previous
    return true
  }

  // MARK: Lines

  private func take(_ item: LogCursor.Item) throws {
    switch item {
    case .segment: break
    case .problem(let problem):
      if let first = try followed?.contents().segments.first?.firstLSN,
        try showRemoved(before: first)
      {
        return
      }
      if !problem.isTail { isDamaged = true }
      durability.note(problem)
      try emit(lines.line(problem), nil)
    case .record(let record, _, let payload):
      durability.note(record)
      if followed != nil {
        _ = try showRemoved(before: record.firstLSN)
        reached = max(reached, record.lastLSN)
      }
      if request.filter.isBehind(record) { isBehind = true }
      guard request.filter.admits(record) else { return }
      if request.showsRecords {
        guard request.filter.time.contains(record.baseTime) else { return }
        let line = lines.line(record, isReadable: payload != nil)
        let isJSON = request.arguments.wantsJSON
        return try emit(isJSON ? line : Terminal.folded(line, hanging: 12), record.firstLSN)
      }
      guard let payload else { return }
      let content = RecordWrites(record, payload)
      for write in request.filter.wanted(content.writes) {
        let isDurable = durability.isKnown(write.lsn)
        if !isDurable { hasMarks = !request.arguments.wantsJSON }
        try emit(lines.line(write, in: record, isDurable: isDurable), write.lsn)
      }
      if let problem = content.problem {
        isDamaged = true
        try emit(
          lines.line(
            LogCursor.Problem(
              path: record.segment.fileName, offset: record.offset, expected: "writes",
              found: problem)), nil)
      }
    }
  }

  /// - Parameter lsn: of a write; nil for a problem, which is printed at once.
  private func emit(_ line: String, _ lsn: LogSequenceNumber?) throws {
    guard let lsn else {
      return try request.arguments.wantsJSON ? terminal.print(line) : terminal.report(line)
    }
    count += 1
    if isStreaming { return try terminal.print(line) }
    waiting.append(line)
    waitingLSNs.append(lsn)
  }
}
