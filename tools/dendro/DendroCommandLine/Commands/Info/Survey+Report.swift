import DendroEngine
import DendroStorage

extension Survey {
  var json: JSONValue {
    let opening = opening
    return .object([
      ("directory", .string(path)), ("format", .integer(Int64(formatVersions.upperBound))),
      ("oldestFormat", .integer(Int64(formatVersions.lowerBound))),
      ("secondRoot", .bool(hasSecondRoot)),
      ("id", databaseID.map { .string("\($0)") } ?? .null),
      ("good", isDamaged ? .bool(false) : isFull ? .bool(true) : .null),
      ("lastLSN", .unsigned(lastLSN.rawValue)),
      ("durableUpTo", .unsigned(durableUpTo.rawValue)),
      (
        "sync",
        sync.map { sync in
          .object([
            ("server", .string(sync.server)), ("targets", .count(sync.targetCount)),
            ("pending", .count(sync.writes.count)),
          ])
        } ?? .null
      ),
      ("leaves", leafCount.map { .count($0) } ?? .null),
      ("bytes", .unsigned(totalByteCount)), ("writesInLog", .unsigned(writeCount)),
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
        "proven",
        provenRanges.map { ranges in
          .array(
            ranges.map { range in
              .object([
                ("first", .unsigned(range.lowerBound)), ("last", .unsigned(range.upperBound)),
              ])
            })
        } ?? .null
      ),
      (
        "segments",
        .array(
          segments.map { segment in
            .object([
              ("file", .string(segment.name.fileName)), ("bytes", .unsigned(segment.byteCount)),
              ("records", segment.records.map { .count($0.count) } ?? .null),
              ("writes", .unsigned(segment.writeCount)),
              ("firstLSN", .unsigned(segment.name.firstLSN.rawValue)),
              ("lastLSN", .unsigned(segment.lastLSN.rawValue)),
              ("rawBytes", segment.records.map { .unsigned($0.rawByteCount) } ?? .null),
              ("recordBytes", segment.records.map { .unsigned($0.byteCount) } ?? .null),
              ("good", .bool(segment.isGood)),
              ("unreadableRecords", segment.records.map { .count($0.unreadableCount) } ?? .null),
              ("sealed", segment.records.map { .bool($0.isSealed) } ?? .null),
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
      (
        "opening",
        .object([
          ("checkpoint", opening.checkpoint.map { .unsigned($0.lsn.rawValue) } ?? .null),
          ("checkpointBytes", .unsigned(opening.checkpoint?.byteCount ?? 0)),
          ("logBytes", .unsigned(opening.logByteCount)), ("writes", .unsigned(opening.writeCount)),
        ])
      ),
      (
        "top",
        largest.map { largest in
          .array(
            largest.entries.map {
              .object([
                ("path", .string("\($0.path)")), ("leaves", .count($0.leafCount)),
                ("bytes", .unsigned($0.byteCount)),
              ])
            })
        } ?? .null
      ),
      ("parityFiles", .count(contents.parityFiles.count)),
      ("parityBytes", .unsigned(parityByteCount)),
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
      try terminal.print("\(name.padded(to: 16))\(value.printable)")
    }
    /// A row of several things, on as many lines as the terminal needs.
    func list(_ name: String, _ first: String, _ rest: String) throws {
      let columns = Terminal.columns ?? .max
      let lines = (first + rest).wrapped(toColumns: max(40, columns) - 16)
      try row(name, lines[0])
      let indent = String(repeating: " ", count: first.columnCount)
      for line in lines.dropFirst() {
        try row("", (line.columnCount + indent.count + 16 > columns ? "" : indent) + line)
      }
    }
    try row("directory", path)
    let (oldest, newest) = (formatVersions.lowerBound, formatVersions.upperBound)
    try row(
      "format",
      (oldest == newest ? "\(newest)" : "\(newest), and older files of \(oldest)")
        + (hasSecondRoot ? ", with the second root, which older releases refuse" : ""))
    try row("database id", databaseID.map { "\($0)" } ?? "unknown")
    try list(
      "last write", "",
      "\(lastLSN)" + (lastTime.map { ", \(Format.time($0))" } ?? "")
        + (isLogDamaged ? "; of a damaged log, as far as it can be read" : ""))
    try row("known durable", "up to \(durableUpTo)")
    if let provenRanges {
      try list(
        "history", "",
        provenRanges.isEmpty
          ? "no state is proven"
          : "the states after the writes \(Format.ranges(provenRanges)) are proven")
    } else if let history {
      let time = history.oldestTime.map { ", \(Format.time($0))" } ?? ""
      try row(
        "history",
        "back to write \(history.oldest)\(time)" + (isLogDamaged ? ", but for what is damaged" : "")
      )
    }
    if let sync {
      try list(
        "in step with", "",
        "\(sync.server): \(Format.count(sync.targetCount, "tracked target")), "
          + "\(Format.count(sync.writes.count, "write")) without an answer ('dendro pending')"
      )
    }
    if let leafCount { try row("tree", "\(Format.count(leafCount, "leaf"))") }
    try row("on disk", Format.bytes(totalByteCount))
    if !contents.parityFiles.isEmpty {
      let files = Format.count(contents.parityFiles.count, "file")
      try row("parity", "\(Format.bytes(parityByteCount)) beside that, of \(files)")
    }
    let opening = opening
    try list(
      "opening", "",
      refusal != nil
        ? "fails"
        : (opening.checkpoint.map { "loads \(Format.bytes($0.byteCount)), the checkpoint, and " }
          ?? "")
          + "replays \(Format.count(opening.writeCount, "write")), at most "
          + "\(Format.bytes(opening.logByteCount)) of log"
          + (report.map { "; took \(Format.seconds($0.elapsed / .seconds(1)))" }
            ?? (isLogDamaged ? "; fails if it meets the damage" : "")))
    // Without all segments, the last one stands for the rest.
    try list(
      "log", "",
      "\(Format.count(writeCount, "write"))"
        + (compressionRatio.map {
          ", \(Format.bytes(rawByteCount)) as \(Format.bytes(recordByteCount)) "
            + "(\(Format.decimal($0, places: 2)) : 1)"
            + (segments.allSatisfy { $0.records != nil } ? "" : " in the last segment")
        } ?? ""))
    for segment in segments {
      try list(
        "  segment",
        "\(segment.name.fileName)  \(Format.bytes(segment.byteCount).leftPadded(to: 9))  ",
        segment.isGood ? Self.text(segment) : terminal.colored("cannot be read", .red))
    }
    let lsnWidth = checkpoints.map { "\($0.lsn)".count }.max() ?? 0
    for checkpoint in checkpoints {
      let rest =
        checkpoint.problem.map { terminal.colored("not good: \($0)", .red) }
        ?? "\(Format.count(checkpoint.leafCount ?? 0, "leaf")), \(Format.count(checkpoint.chunkCount ?? 0, "chunk")), "
        + "hash \(Self.hash(checkpoint.contentHash ?? 0))"
        + (checkpoint.time.map { ", \(Format.time($0))" } ?? "")
      try list(
        "checkpoint",
        "LSN \("\(checkpoint.lsn)".leftPadded(to: lsnWidth))  "
          + "\(Format.bytes(checkpoint.byteCount).leftPadded(to: 9))  ", rest)
    }
    for entry in largest?.entries ?? [] {
      try row(
        "largest",
        "\(entry.path)  \(Format.count(entry.leafCount, "leaf")), \(Format.bytes(entry.byteCount)) as JSON"
      )
    }
    for file in contents.orphanedParityFiles { try row("no file to", file) }
    for file in contents.tornFiles { try row("cut by recovery", file) }
    for file in contents.foreign { try row("not ours", file) }
    let lines = LogLines(terminal: terminal, isJSON: false)
    let places = problems.filter { !$0.dependsOnDamage }
    for problem in places { try terminal.report(lines.line(problem)) }
    if places.count < problems.count {
      try terminal.report(lines.unreadable(problems.count - places.count))
    }
    if let refusal {
      try terminal.print(terminal.colored("cannot be opened: \(refusal)", .red))
    }
  }

  private static func text(_ segment: Segment) -> String {
    let writes = "\(Format.count(segment.writeCount, "write")), to LSN \(segment.lastLSN)"
    guard let records = segment.records else { return writes + ", by the names of the files" }
    let unreadable = records.unreadableCount
    return Format.count(records.count, "record")
      + (unreadable > 0 ? ", \(Format.count(unreadable)) of them unreadable, " : ", ") + writes
      + (records.isSealed ? ", sealed" : "")
  }
}
