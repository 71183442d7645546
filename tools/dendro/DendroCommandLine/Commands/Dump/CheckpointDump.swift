import DendroStorage
import DendroTree

/// One checkpoint, or one chunk of it, taken apart.
struct CheckpointDump {
  let input: DumpInput
  private var directory: DatabaseDirectory { input.directory }

  func run() throws -> ExitCode {
    let (lsn, chunk) = try place()
    let checkpoint = try AnnotatedCheckpoint(directory, lsn: lsn)
    let terminal = try input.terminal()
    let problem: String?
    if let chunk {
      problem = try show(chunk, of: checkpoint, lsn, terminal)
    } else {
      problem = checkpoint.problem
      try show(checkpoint, lsn, terminal)
    }
    try terminal.flush()
    return problem == nil ? .success : .damaged
  }

  private func place() throws -> (LogSequenceNumber, chunk: Int?) {
    let word = input.what
    let parts = word.split(separator: ":", omittingEmptySubsequences: false)
    let chunk = parts.count == 2 ? Int(parts[1]) : nil
    guard parts.count == 1 || (parts.count == 2 && chunk ?? -1 >= 0) else { throw Self.usage(word) }
    let checkpoints = try directory.contents().checkpoints
    if parts[0] == "checkpoint" {
      guard let newest = checkpoints.last else {
        throw Failure(.problem, "there is no checkpoint")
      }
      return (newest, chunk)
    }
    guard parts[0].hasSuffix(".checkpoint"), let number = UInt64(parts[0].dropLast(11)) else {
      throw Self.usage(word)
    }
    guard checkpoints.contains(LogSequenceNumber(number)) else {
      throw Failure(.problem, "there is no checkpoint at write \(number)")
    }
    return (LogSequenceNumber(number), chunk)
  }

  private static func usage(_ word: String) -> Failure {
    .usage("WHAT is LSN.checkpoint or LSN.checkpoint:CHUNK, not \(Failure.quoted(word))")
  }

  private func fileName(_ lsn: LogSequenceNumber) -> String {
    String(directory.path(ofCheckpoint: lsn).split(separator: "/").last ?? "")
  }

  // MARK: A checkpoint

  private func show(
    _ checkpoint: AnnotatedCheckpoint, _ lsn: LogSequenceNumber, _ terminal: Terminal
  ) throws {
    if input.wantsJSON {
      let chunks = checkpoint.chunks.enumerated().map { number, chunk -> JSONValue in
        .object([
          ("number", .count(number)), ("offset", .unsigned(chunk.offset)),
          ("bytes", .count(chunk.byteCount)), ("rawBytes", .count(chunk.rawByteCount)),
        ])
      }
      return try terminal.print(
        JSONValue.object([
          ("file", .string(fileName(lsn))), ("fields", .array(checkpoint.fields.map(json))),
          ("problem", checkpoint.problem.map { .string($0) } ?? .null), ("chunks", .array(chunks)),
        ]).text)
    }
    try terminal.print(fileName(lsn))
    try show(checkpoint.fields, terminal)
    if let problem = checkpoint.problem {
      try terminal.report(terminal.colored("damage: \(problem)", .red))
    }
    if !checkpoint.chunks.isEmpty { try terminal.print() }
    for (number, chunk) in checkpoint.chunks.enumerated() {
      try terminal.print(
        "\(chunk.offset)".leftPadded(to: 10) + "  " + terminal.colored("chunk \(number)", .cyan)
          + "  \(Format.count(chunk.byteCount)) bytes, \(Format.count(chunk.rawByteCount)) raw")
    }
  }

  // MARK: A chunk

  /// - Returns: what is wrong with it.
  private func show(
    _ number: Int, of checkpoint: AnnotatedCheckpoint, _ lsn: LogSequenceNumber,
    _ terminal: Terminal
  ) throws -> String? {
    // The last chunk of a checkpoint with a second root divides the others between the trees.
    let isDivision = checkpoint.hasSecondRoot && number == checkpoint.chunks.count - 1
    let isOfPages = checkpoint.formatVersion ?? 0 > 0 && !isDivision
    let chunk = try checkpoint.chunk(number, in: directory) { bytes in
      isOfPages ? AnnotatedPages(bytes) : nil
    }
    guard let chunk else {
      if let problem = checkpoint.problem { throw Failure(.damaged, problem) }
      throw Failure(
        .problem, "the checkpoint has \(Format.count(checkpoint.chunks.count, "chunk")), from 0 on")
    }
    let pages = chunk.result ?? nil
    let problem = chunk.problem ?? pages?.problem
    if input.wantsJSON {
      let shown = pages?.pages.map { page -> JSONValue in
        .object([
          ("rawOffset", .count(page.offset)), ("kind", .string(page.kind)),
          ("fields", .array(page.fields.map(json))),
        ])
      }
      try terminal.print(
        JSONValue.object([
          ("file", .string(fileName(lsn))), ("fields", .array(chunk.fields.map(json))),
          ("problem", problem.map { .string($0) } ?? .null), ("pages", .array(shown ?? [])),
        ]).text)
      return problem
    }
    try terminal.print("\(fileName(lsn)), chunk \(number)")
    try show(chunk.fields, terminal)
    if isDivision {
      try terminal.print("which chunks hold the data and which the second root, no pages")
    } else if !isOfPages {
      try terminal.print("format version 0: leaves with their paths, no pages")
    }
    var rest = input.limit
    for page in pages?.pages ?? [] {
      guard rest > 0 else { break }
      try terminal.print()
      for field in page.fields.prefix(rest) {
        // Long strings are cut.
        let bytes = Array(field.bytes.prefix(16))
        let more = field.bytes.count > 16 ? " …" : ""
        let line = Format.field(
          field.name, more + Self.short(field.value), bytes: bytes, at: UInt64(field.offset),
          terminal,
          bytesWidth: 47, nameWidth: 21)
        try terminal.report("raw " + line.dropFirst(4), hanging: 12)
      }
      rest -= min(rest, page.fields.count)
    }
    let all = pages?.pages.reduce(0) { $0 + $1.fields.count } ?? 0
    if all > input.limit {
      try terminal.print("            … \(Format.count(all - input.limit)) fields more; --bytes N")
    }
    if let problem { try terminal.report(terminal.colored("damage: \(problem)", .red)) }
    return problem
  }

  private static func short(_ text: String) -> String {
    text.count > 60 ? text.prefix(59) + "…" : text
  }

  // MARK: Fields

  private func show(_ fields: [AnnotatedCheckpoint.Field], _ terminal: Terminal) throws {
    for field in fields {
      try terminal.report(
        Format.field(
          field.name, field.value, bytes: field.bytes, at: field.offset, terminal, bytesWidth: 47,
          nameWidth: 21), hanging: 12)
    }
  }

  private func json(_ field: AnnotatedCheckpoint.Field) -> JSONValue {
    json(field.name, field.value, bytes: field.bytes, at: field.offset)
  }

  private func json(_ field: AnnotatedPages.Field) -> JSONValue {
    json(field.name, field.value, bytes: field.bytes, at: UInt64(field.offset))
  }

  private func json(_ name: String, _ value: String, bytes: [UInt8], at offset: UInt64)
    -> JSONValue
  {
    .object([
      ("offset", .unsigned(offset)), ("bytes", .string(Format.hex(bytes))),
      ("name", .string(name)), ("value", .string(value)),
    ])
  }
}

extension Format {
  static func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined(separator: " ")
  }

  /// A line of a dump.
  static func field(
    _ name: String, _ value: String, bytes: [UInt8], at offset: UInt64, _ terminal: Terminal,
    bytesWidth: Int, nameWidth: Int = 17
  ) -> String {
    "\(offset)".leftPadded(to: 10) + "  "
      + terminal.colored(hex(bytes).padded(to: bytesWidth), .dim) + "  "
      + terminal.colored(name.padded(to: nameWidth), .cyan) + "  " + value
  }
}
