import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let info = Command(
    name: "info", summary: "what is in the directory: files, sizes, numbers, checkpoints",
    discussion: """
      Tells as much as can be read of a damaged database, and ends with exit code 2 then. Works beside a
      running writer.
      """,
    parameters: [.directory],
    options: [.json],
    examples: [Example(line: "dendro info db", summary: "for people; --json for programs")],
    run: { arguments in
      let directory = try DatabaseDirectory.open(
        Platform.absolutePath(arguments.directory), environment: .system, mode: .readOnly)
      defer { directory.close() }
      let survey = try Survey(directory)
      guard !survey.isEmpty else {
        throw Failure(.problem, "there is no database at \(arguments.directory)")
      }
      let terminal = try Terminal(color: arguments.value("color"))
      if arguments.wantsJSON {
        try terminal.print(survey.json.text)
      } else {
        try survey.print(to: terminal)
      }
      try terminal.flush()
      return survey.isDamaged ? .damaged : .success
    })
}

/// What a directory holds, file by file.
struct Survey {
  struct Segment {
    var name: SegmentName
    var byteCount: UInt64 = 0
    var recordCount = 0
    var writeCount = 0
    /// Bytes of records with writes, headers included, and of their payloads before compression.
    var recordByteCount: UInt64 = 0
    var rawByteCount: UInt64 = 0
    var lastLSN = LogSequenceNumber.zero
    var isSealed = false
  }

  struct Checkpoint {
    var lsn: LogSequenceNumber
    var byteCount: UInt64 = 0
    var time: Int64?
    var leafCount: UInt64?
    var rawByteCount: UInt64?
    var contentHash: UInt64?
    var chunkCount: Int?
    var problem: String?
  }

  let path: String
  private(set) var segments: [Segment] = []
  private(set) var checkpoints: [Checkpoint] = []
  let contents: DatabaseDirectory.Contents
  private(set) var databaseID: DatabaseID?
  private(set) var durableUpTo = LogSequenceNumber.zero
  private(set) var firstTime: Int64?
  private(set) var lastTime: Int64?
  private(set) var problems: [LogCursor.Problem] = []
  /// Of opening: nil where it is refused.
  private(set) var report: RecoveryReport?
  private(set) var refusal: String?
  private(set) var leafCount: Int?
  /// Which states of the past can be read.
  private(set) var history: HistoryRange?

  var isEmpty: Bool { contents.isEmpty }
  var isDamaged: Bool {
    refusal != nil || checkpoints.contains { $0.problem != nil }
      || problems.contains { !$0.isTail }
  }
  var lastLSN: LogSequenceNumber {
    report?.lastLSN ?? segments.map(\.lastLSN).max() ?? .zero
  }
  var totalByteCount: UInt64 {
    segments.reduce(0) { $0 + $1.byteCount } + checkpoints.reduce(0) { $0 + $1.byteCount }
  }
  var rawByteCount: UInt64 { segments.reduce(0) { $0 + $1.rawByteCount } }
  var recordByteCount: UInt64 { segments.reduce(0) { $0 + $1.recordByteCount } }
  var writeCount: Int { segments.reduce(0) { $0 + $1.writeCount } }
  /// Bytes of encoded writes to one byte of log; nil without writes.
  var compressionRatio: Double? {
    recordByteCount > 0 ? Double(rawByteCount) / Double(recordByteCount) : nil
  }

  init(_ directory: DatabaseDirectory) throws {
    path = directory.path
    contents = try directory.contents()
    guard !contents.isEmpty else { return }
    try readCheckpoints(directory)
    try readLog(directory)
    do throws(EngineError) {
      let engine = try Engine.open(at: directory.path, mode: .readOnly)
      report = engine.report
      leafCount = engine.head.root.leafCount()
      history = try engine.historyRange()
      databaseID = databaseID ?? engine.databaseID
      try engine.close()
    } catch {
      refusal = "\(error)"
    }
  }

  private mutating func readCheckpoints(_ directory: DatabaseDirectory) throws {
    for lsn in contents.checkpoints {
      var checkpoint = Checkpoint(lsn: lsn)
      do throws(StorageError) {
        checkpoint.byteCount = try directory.byteCount(ofCheckpoint: lsn)
        let reader = try CheckpointReader.open(directory, lsn: lsn)
        checkpoint.time = reader.time
        checkpoint.leafCount = reader.leafCount
        checkpoint.rawByteCount = reader.rawByteCount
        checkpoint.contentHash = reader.contentHash
        checkpoint.chunkCount = reader.chunkCount
        databaseID = databaseID ?? reader.databaseID
      } catch {
        checkpoint.problem = "\(error)"
      }
      checkpoints.append(checkpoint)
    }
  }

  private mutating func readLog(_ directory: DatabaseDirectory) throws {
    let cursor = LogCursor(directory)
    var segments: [Segment] = []
    var problems: [LogCursor.Problem] = []
    var durable = LogSequenceNumber.zero
    var times: (first: Int64?, last: Int64?) = (nil, nil)
    var id: DatabaseID?
    while try cursor.step({ item in
      switch item {
      case .segment(let header, _, let byteCount):
        id = id ?? header.databaseID
        var segment = Segment(name: SegmentName(firstLSN: header.firstLSN))
        segment.byteCount = byteCount
        segment.lastLSN = LogSequenceNumber(header.firstLSN.rawValue - 1)
        segments.append(segment)
      case .problem(let problem): problems.append(problem)
      case .record(let record, _, _):
        guard !segments.isEmpty else { return }
        let place = segments.count - 1
        segments[place].recordCount += 1
        segments[place].writeCount += record.count
        segments[place].lastLSN = max(segments[place].lastLSN, record.lastLSN)
        durable = max(durable, record.durableUpTo)
        switch record.kind {
        case .seal: segments[place].isSealed = true
        case .mark: break
        case .writes:
          segments[place].recordByteCount += record.endOffset - record.offset
          segments[place].rawByteCount += UInt64(record.header.rawByteCount)
          times.first = times.first ?? record.baseTime
          times.last = record.baseTime
        }
      }
    }) {}
    self.segments = segments
    self.problems = problems
    durableUpTo = durable
    firstTime = times.first
    lastTime = times.last
    databaseID = databaseID ?? id
  }

  var json: JSONValue {
    .object([
      ("directory", .string(path)), ("format", .integer(Int64(storageFormatVersion))),
      ("id", databaseID.map { .string("\($0)") } ?? .null),
      ("good", .bool(!isDamaged)), ("lastLSN", .unsigned(lastLSN.rawValue)),
      ("durableUpTo", .unsigned(durableUpTo.rawValue)),
      ("leaves", leafCount.map { .count($0) } ?? .null),
      ("bytes", .unsigned(totalByteCount)), ("writesInLog", .count(writeCount)),
      ("logRawBytes", .unsigned(rawByteCount)), ("logRecordBytes", .unsigned(recordByteCount)),
      ("compressionRatio", compressionRatio.map { .number($0) } ?? .null),
      ("firstTime", firstTime.map { .integer($0) } ?? .null),
      ("lastTime", lastTime.map { .integer($0) } ?? .null),
      (
        "history",
        history.map { range in
          .object([
            ("oldest", .unsigned(range.oldest.rawValue)),
            ("oldestTime", range.oldestTime.map { .integer($0) } ?? .null),
            ("newest", .unsigned(range.newest.rawValue)),
            ("newestTime", range.newestTime.map { .integer($0) } ?? .null),
          ])
        } ?? .null
      ),
      (
        "segments",
        .array(
          segments.map { segment in
            .object([
              ("file", .string(segment.name.fileName)), ("bytes", .unsigned(segment.byteCount)),
              ("records", .count(segment.recordCount)), ("writes", .count(segment.writeCount)),
              ("firstLSN", .unsigned(segment.name.firstLSN.rawValue)),
              ("lastLSN", .unsigned(segment.lastLSN.rawValue)),
              ("rawBytes", .unsigned(segment.rawByteCount)),
              ("recordBytes", .unsigned(segment.recordByteCount)),
              ("sealed", .bool(segment.isSealed)),
            ])
          })
      ),
      (
        "checkpoints",
        .array(
          checkpoints.map { checkpoint in
            .object([
              ("lsn", .unsigned(checkpoint.lsn.rawValue)),
              ("bytes", .unsigned(checkpoint.byteCount)),
              ("time", checkpoint.time.map { .integer($0) } ?? .null),
              ("leaves", checkpoint.leafCount.map { .unsigned($0) } ?? .null),
              ("rawBytes", checkpoint.rawByteCount.map { .unsigned($0) } ?? .null),
              ("chunks", checkpoint.chunkCount.map { .count($0) } ?? .null),
              ("hash", checkpoint.contentHash.map { .string(Self.hash($0)) } ?? .null),
              ("problem", checkpoint.problem.map { .string($0) } ?? .null),
            ])
          })
      ),
      ("tornFiles", .array(contents.tornFiles.map { .string($0) })),
      ("foreignFiles", .array(contents.foreign.map { .string($0) })),
      ("problems", .array(problems.map { .string("\($0)") })),
      ("refusal", refusal.map { .string($0) } ?? .null),
    ])
  }

  static func hash(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  func print(to terminal: Terminal) throws {
    func row(_ name: String, _ value: String) throws {
      try terminal.print("\(name.padded(to: 16))\(value)")
    }
    try row("directory", path)
    try row("format", "\(storageFormatVersion)")
    try row("database id", databaseID.map { "\($0)" } ?? "unknown")
    try row("last write", "\(lastLSN)" + (lastTime.map { ", \(Format.time($0))" } ?? ""))
    try row("known durable", "up to \(durableUpTo)")
    if let history {
      let time = history.oldestTime.map { ", \(Format.time($0))" } ?? ""
      try row("history", "back to write \(history.oldest)\(time)")
    }
    if let leafCount { try row("tree", "\(Format.count(leafCount, "leaf"))") }
    try row("on disk", Format.bytes(totalByteCount))
    try row(
      "log",
      "\(Format.count(writeCount, "write")), \(Format.bytes(rawByteCount)) as "
        + "\(Format.bytes(recordByteCount))"
        + (compressionRatio.map { " (\(Format.decimal($0, places: 2)) : 1)" } ?? ""))
    for segment in segments {
      try row(
        "  segment",
        "\(segment.name.fileName)  \(Format.bytes(segment.byteCount).leftPadded(to: 9))  "
          + "\(Format.count(segment.recordCount, "record")), \(Format.count(segment.writeCount, "write")), "
          + "to LSN \(segment.lastLSN)" + (segment.isSealed ? ", sealed" : ""))
    }
    for checkpoint in checkpoints {
      let rest =
        checkpoint.problem.map { terminal.colored("unreadable: \($0)", .red) }
        ?? "\(Format.count(checkpoint.leafCount ?? 0, "leaf")), \(checkpoint.chunkCount ?? 0) chunks, "
        + "hash \(Self.hash(checkpoint.contentHash ?? 0))"
        + (checkpoint.time.map { ", \(Format.time($0))" } ?? "")
      try row(
        "checkpoint",
        "LSN \(checkpoint.lsn)  \(Format.bytes(checkpoint.byteCount).leftPadded(to: 9))  \(rest)")
    }
    for file in contents.tornFiles { try row("cut by recovery", file) }
    for file in contents.foreign { try row("not ours", file) }
    let lines = LogLines(terminal: terminal, isJSON: false)
    for problem in problems { try terminal.print(lines.line(problem)) }
    if let refusal {
      try terminal.print(terminal.colored("cannot be opened: \(refusal)", .red))
    }
  }
}
