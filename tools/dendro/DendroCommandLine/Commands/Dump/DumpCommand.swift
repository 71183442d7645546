import DendroEngine
import DendroStorage
import DendroTree

extension Command {
  static let dump = Command(
    name: "dump", summary: "show a record, a checkpoint or a chunk of pages byte by byte",
    discussion: """
      Prints the header of a record field by field, with the offset, the bytes and the meaning of each, then
      the writes in its payload, with their offsets before compression, and the bytes of the payload as they
      stand in the file. WHAT is the number (LSN) of a write, or a place as 'log' and 'log --records' print
      it, SEGMENT:OFFSET; SEGMENT:0 is the header of the segment. Damaged records are shown as far as
      they can be read, with exit code 2.

      LSN.checkpoint is the header, the index and the footer of a checkpoint; LSN.checkpoint:CHUNK the header of a
      chunk, and the pages in it, with their offsets before compression. The word checkpoint stands for the newest.
      """,
    parameters: [
      .directory,
      Parameter(
        name: "WHAT", summary: "an LSN, SEGMENT:OFFSET as 1:64, or LSN.checkpoint[:CHUNK]"),
    ],
    options: [
      Option(
        name: "bytes", value: "N",
        summary: "so many bytes of the payload, or fields of pages, 256 if left out"), .json,
    ],
    examples: [
      Example(line: "dendro dump db 1200", summary: "the record of that write"),
      Example(line: "dendro dump db 1:64", summary: "the first record of the first segment"),
      Example(line: "dendro dump db 1:0", summary: "the header of the segment"),
      Example(line: "dendro dump db checkpoint", summary: "the newest checkpoint, and its chunks"),
      Example(line: "dendro dump db checkpoint:0", summary: "the pages of its first chunk"),
    ],
    run: { arguments in
      let input = try DumpInput(arguments)
      defer { input.directory.close() }
      return try input.isCheckpoint
        ? CheckpointDump(input: input).run() : RecordDump(input: input).run()
    })
}

/// What is dumped, of which directory, and how much of it.
struct DumpInput {
  let what: String
  let directory: DatabaseDirectory
  /// Bytes of a payload, or fields of pages, that are shown.
  let limit: Int
  let wantsJSON: Bool
  private let color: String?

  init(_ arguments: Arguments) throws {
    what = arguments.positional[1]
    limit = try arguments.integer("bytes", in: 0...(1 << 30)) ?? 256
    wantsJSON = arguments.wantsJSON
    color = arguments.value("color")
    directory = try DatabaseDirectory.open(
      arguments.directoryPath(), environment: .system, mode: .readOnly)
  }

  var isCheckpoint: Bool {
    what.split(separator: ":").first?.hasSuffix("checkpoint") == true
  }

  func terminal() throws -> Terminal { try Terminal(color: color) }
}

/// One record, taken apart.
private struct RecordDump {
  let input: DumpInput
  private var directory: DatabaseDirectory { input.directory }

  func run() throws -> ExitCode {
    let (segment, offset) = try place()
    let record =
      offset == 0
      ? try AnnotatedRecord(headerOf: segment, in: directory)
      : try AnnotatedRecord(at: offset, of: segment, in: directory)
    let (writes, problem) = offset == 0 ? ([], nil) : try self.writes(segment, offset)
    let bytes = try record.payload.map {
      try AnnotatedRecord.bytes($0, of: segment, in: directory)
    }
    let terminal = try input.terminal()
    if input.wantsJSON {
      try terminal.print(json(record, of: segment, writes: writes, payload: bytes ?? []).text)
    } else {
      try print(record, of: segment, writes: writes, payload: bytes ?? [], terminal)
    }
    // The header may be good where the payload is not.
    if record.problem == nil, let problem, !input.wantsJSON {
      try terminal.report(LogLines(terminal: terminal, isJSON: false).line(problem))
    }
    try terminal.flush()
    return record.problem == nil && problem == nil ? .success : .damaged
  }

  /// Where the record lies.
  private func place() throws -> (SegmentName, UInt64) {
    let word = input.what
    let segments = try directory.contents().segments
    let parts = word.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count == 2 {
      // Also the name of the file, as errors print it.
      let digits = parts[0].hasSuffix(".log") ? parts[0].dropLast(4) : parts[0]
      guard let number = UInt64(digits), let offset = UInt64(parts[1]) else {
        throw Self.usage(word)
      }
      guard let segment = segments.first(where: { $0.firstLSN.rawValue == number }) else {
        throw Failure(.problem, "there is no segment \(number)")
      }
      guard offset == 0 || offset >= 64 else {
        throw Failure.usage("records begin at offset 64; \(number):0 is the segment's header")
      }
      guard try offset < directory.byteCount(of: segment) else {
        throw Failure(.problem, "\(segment.fileName) has no offset \(offset)")
      }
      return (segment, offset)
    }
    guard let lsn = UInt64(word), lsn > 0 else { throw Self.usage(word) }
    var found: (SegmentName, UInt64)?
    var isDamaged = false
    let cursor = LogCursor(directory, after: LogSequenceNumber(lsn - 1))
    while found == nil,
      try cursor.step({ item in
        if case .problem(let problem) = item, !problem.isTail { isDamaged = true }
        guard found == nil, case .record(let record, _, _) = item, record.count > 0,
          record.firstLSN.rawValue <= lsn, record.lastLSN.rawValue >= lsn
        else { return }
        found = (record.segment, record.offset)
      })
    {}
    if let found { return found }
    throw isDamaged
      ? Failure(
        .damaged, "the log is damaged, and no record of it that can be read has write \(lsn)")
      : Failure(.problem, "the log has no write \(lsn)")
  }

  private static func usage(_ word: String) -> Failure {
    .usage("WHAT is an LSN, SEGMENT:OFFSET or LSN.checkpoint, not \(Failure.quoted(word))")
  }

  /// The writes of the record, or why they cannot be read; the segment is read from its beginning, since payloads
  /// build on each other.
  private func writes(
    _ segment: SegmentName, _ offset: UInt64
  ) throws -> ([LoggedWrite], LogCursor.Problem?) {
    var writes: [LoggedWrite] = []
    var last: LogCursor.Problem?
    var problem: LogCursor.Problem?
    var isBehind = false
    let cursor = LogCursor(directory, after: segment.firstLSN.previous)
    while !isBehind,
      try cursor.step({ item in
        if case .problem(let found) = item { last = found }
        guard case .record(let record, _, let payload) = item else { return }
        isBehind = record.segment > segment || record.offset >= offset
        guard record.segment == segment, record.offset == offset else { return }
        if let payload {
          writes = RecordWrites(record, payload).writes
        } else {
          problem = last
        }
      })
    {}
    return (writes, problem)
  }

  // MARK: Output

  private func print(
    _ record: AnnotatedRecord, of segment: SegmentName, writes: [LoggedWrite],
    payload bytes: [UInt8], _ terminal: Terminal
  ) throws {
    try terminal.print(segment.fileName)
    let width = max(12, record.fields.map { $0.bytes.count * 3 - 1 }.max() ?? 0)
    for field in record.fields {
      try terminal.report(
        Format.field(
          field.name, field.value, bytes: field.bytes, at: field.offset, terminal, bytesWidth: width
        ), hanging: 12)
    }
    if let problem = record.problem {
      try terminal.report(terminal.colored("damage: \(problem)", .red))
    }
    guard let payload = record.payload, !payload.isEmpty else { return }
    try terminal.print()
    var offset = 0
    for write in writes {
      try terminal.report(
        "raw \("\(offset)".leftPadded(to: 6))  \(write.byteCount) bytes  "
          + "LSN \(write.lsn)  \(Format.time(write.time))  \(LogLines.operation(write.write))  "
          + terminal.colored("\(write.write.path)".printable, .cyan)
          + (write.system.map { "  and \(LogLines.operation($0)) of \($0.path) in the second root" }
            ?? "")
          + (write.origin.map { "  from client \(hexadecimal($0.client)), number \($0.number)" }
            ?? ""),
        hanging: 12)
      offset += write.byteCount
    }
    if !writes.isEmpty { try terminal.print() }
    for start in stride(from: 0, to: min(bytes.count, input.limit), by: 16) {
      let row = bytes[start..<min(start + 16, bytes.count, input.limit)]
      let text = String(
        String.UnicodeScalarView(
          row.map { (0x20..<0x7F).contains($0) ? UnicodeScalar($0) : UnicodeScalar(".") }))
      try terminal.print(
        "\(payload.lowerBound + UInt64(start))".leftPadded(to: 10) + "  "
          + Format.hex(row).padded(to: 47) + "  " + terminal.colored(text, .dim))
    }
    if bytes.count > input.limit {
      try terminal.print("            … \(Format.count(bytes.count - input.limit)) bytes more")
    }
  }

  private func json(
    _ record: AnnotatedRecord, of segment: SegmentName, writes: [LoggedWrite],
    payload bytes: [UInt8]
  ) -> JSONValue {
    let fields = record.fields.map { field -> JSONValue in
      .object([
        ("offset", .unsigned(field.offset)), ("bytes", .string(Format.hex(field.bytes))),
        ("name", .string(field.name)), ("value", .string(field.value)),
      ])
    }
    var offset = 0
    let parts = writes.map { write -> JSONValue in
      defer { offset += write.byteCount }
      return .object([
        ("rawOffset", .count(offset)), ("bytes", .count(write.byteCount)),
        ("lsn", .unsigned(write.lsn.rawValue)), ("time", .integer(write.time)),
        ("operation", .string(LogLines.operation(write.write))),
        ("path", .string("\(write.write.path)")),
        (
          "system",
          write.system.map {
            .object([
              ("operation", .string(LogLines.operation($0))), ("path", .string("\($0.path)")),
            ])
          } ?? .null
        ),
        ("client", write.origin.map { .string(hexadecimal($0.client)) } ?? .null),
        ("clientNumber", write.origin.map { .unsigned($0.number) } ?? .null),
      ])
    }
    return .object([
      ("file", .string(segment.fileName)), ("fields", .array(fields)),
      ("problem", record.problem.map { .string($0) } ?? .null), ("writes", .array(parts)),
      ("payloadOffset", record.payload.map { .unsigned($0.lowerBound) } ?? .null),
      ("payload", .string(Format.hex(bytes.prefix(input.limit)))),
    ])
  }
}
