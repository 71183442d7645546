import DendroEngine
import DendroStorage
import DendroTree

/// Which of the log's writes are wanted.
struct LogFilter {
  var path: Path?
  var lsn: ClosedRange<UInt64> = 0...UInt64.max
  var time: ClosedRange<Int64> = Int64.min...Int64.max

  func admits(_ write: LoggedWrite) -> Bool {
    guard lsn.contains(write.lsn.rawValue), time.contains(write.time) else { return false }
    guard let path else { return true }
    let target = write.write.path
    guard Self.concern(target, path) else { return false }
    guard case .update(_, let entries) = write.write, target.count < path.count else { return true }
    return entries.contains { Self.concern(target.appending($0.path), path) }
  }

  func admits(_ record: RecordInfo) -> Bool {
    record.count == 0
      ? lsn.contains(record.lastLSN.rawValue)
      : record.lastLSN.rawValue >= lsn.lowerBound && record.firstLSN.rawValue <= lsn.upperBound
  }

  /// Whether one of the two lies at or above the other.
  static func concern(_ a: Path, _ b: Path) -> Bool { a.isPrefix(of: b) || b.isPrefix(of: a) }
}

/// Lines about the log, for people and for programs.
struct LogLines {
  let terminal: Terminal
  let isJSON: Bool
  /// Characters of a value that are shown.
  var valueWidth = 48

  // MARK: Writes

  static let heading =
    "\("LSN".leftPadded(to: 8))  \("TIME".padded(to: 24))  \("OPERATION".padded(to: 9))  "
    + "\("BYTES".leftPadded(to: 7))  FILE:OFFSET  PATH  VALUE"

  func line(_ write: LoggedWrite, in record: RecordInfo) -> String {
    isJSON ? json(write, in: record) : text(write, in: record)
  }

  private func text(_ logged: LoggedWrite, in record: RecordInfo) -> String {
    let lsn = "\(logged.lsn)".leftPadded(to: 8)
    let time = terminal.colored(Format.time(logged.time), .dim)
    let operation = Self.operation(logged.write).padded(to: 9)
    let size = "\(logged.byteCount)".leftPadded(to: 7)
    let place = terminal.colored(Self.place(record), .dim)
    let path = terminal.colored(printable("\(logged.write.path)"), .cyan)
    return
      "\(lsn)  \(time)  \(terminal.colored(operation, Self.color(logged.write)))  \(size)  \(place)  "
      + "\(path)  \(value(logged.write))"
  }

  private func json(_ logged: LoggedWrite, in record: RecordInfo) -> String {
    var members: [(String, JSONValue)] = [
      ("lsn", .unsigned(logged.lsn.rawValue)), ("time", .integer(logged.time)),
      ("operation", .string(Self.operation(logged.write))),
      ("path", .string("\(logged.write.path)")), ("bytes", .count(logged.byteCount)),
      ("file", .string(record.segment.fileName)), ("offset", .unsigned(record.offset)),
    ]
    let export = JSONStyle(.export)
    switch logged.write {
    case .set(_, let node): members.append(("value", .node(node, export)))
    case .increment(_, let delta): members.append(("delta", .node(Node(delta.scalar), export)))
    case .setPriority(_, let priority):
      members.append(("priority", priority.map { .node(Node($0), export) } ?? .null))
    case .remove: break
    case .update(_, let entries):
      members.append(
        (
          "entries",
          .array(
            entries.map { entry in
              var members: [(String, JSONValue)] = [
                ("path", .string(Self.relative(entry.path)))
              ]
              switch entry.action {
              case .set(let node):
                members.append(("operation", .string("set")))
                members.append(("value", .node(node, export)))
              case .remove: members.append(("operation", .string("remove")))
              case .increment(let delta):
                members.append(("operation", .string("increment")))
                members.append(("delta", .node(Node(delta.scalar), export)))
              case .setPriority(let priority):
                members.append(("operation", .string("priority")))
                members.append(("priority", priority.map { .node(Node($0), export) } ?? .null))
              }
              return .object(members)
            })
        ))
    }
    return JSONValue.object(members).text
  }

  private func value(_ write: Write) -> String {
    switch write {
    case .set(_, let node): return preview(node)
    case .increment(_, let delta): return "+ \(JSONWriter.string(Node(delta.scalar)))"
    case .setPriority(_, let priority):
      return priority.map { preview(Node($0)) } ?? "null"
    case .remove: return ""
    case .update(_, let entries):
      var text = ""
      for entry in entries {
        if !text.isEmpty { text += ", " }
        text += printable(Self.relative(entry.path))
        switch entry.action {
        case .set(let node): text += ": " + preview(node)
        case .remove: text += ": null"
        case .increment(let delta): text += " + \(JSONWriter.string(Node(delta.scalar)))"
        case .setPriority(let priority):
          text += "/.priority: " + (priority.map { preview(Node($0)) } ?? "null")
        }
        if text.count > valueWidth {
          let more = entries.count > 1 ? " (\(Format.count(entries.count)) places)" : ""
          return text.prefix(valueWidth - 1) + "…" + more
        }
      }
      return text
    }
  }

  /// The beginning of a node's text, however large it is.
  func preview(_ node: Node) -> String {
    struct Enough: Error {}
    var bytes = [UInt8]()
    do {
      try JSONWriter.write(node, style: JSONStyle(.export)) { part in
        bytes.append(contentsOf: part.prefix(valueWidth * 4 + 1 - bytes.count))
        if bytes.count > valueWidth * 4 { throw Enough() }
      }
    } catch {}
    let text = printable(String(decoding: bytes, as: UTF8.self))
    return text.count > valueWidth ? text.prefix(valueWidth - 1) + "…" : text
  }

  /// Text that leaves the terminal as it is: nothing below is a control character.
  private func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { (0x7F...0x9F).contains($0.value) }) else {
      return text
    }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      result.append((0x7F...0x9F).contains(scalar.value) ? "\u{FFFD}" : scalar)
    }
    return String(result)
  }

  private static func relative(_ path: Path) -> String { String("\(path)".dropFirst()) }

  static func place(_ record: RecordInfo) -> String {
    "\(record.segment.fileName):\(record.offset)"
  }

  static func operation(_ write: Write) -> String {
    switch write {
    case .set: "set"
    case .update: "update"
    case .remove: "remove"
    case .increment: "increment"
    case .setPriority: "priority"
    }
  }

  private static func color(_ write: Write) -> Terminal.Color {
    switch write {
    case .set, .update: .green
    case .remove: .red
    case .increment, .setPriority: .yellow
    }
  }

  // MARK: Records

  static let recordHeading =
    "\("OFFSET".leftPadded(to: 10))  \("KIND".padded(to: 6))  \("WRITES".leftPadded(to: 6))  "
    + "\("LSN".padded(to: 19))  \("STORED".leftPadded(to: 8))  \("RAW".leftPadded(to: 8))  "
    + "\("DURABLE".leftPadded(to: 8))  \("TIME".padded(to: 24))  FILE"

  func line(_ record: RecordInfo, isReadable: Bool) -> String {
    let range =
      record.count == 0
      ? "" : record.count == 1 ? "\(record.firstLSN)" : "\(record.firstLSN)…\(record.lastLSN)"
    let kind =
      switch record.kind {
      case .writes: "writes"
      case .seal: "seal"
      case .idle: "idle"
      }
    let header = record.header
    if isJSON {
      return JSONValue.object([
        ("file", .string(record.segment.fileName)), ("offset", .unsigned(record.offset)),
        ("kind", .string(kind)), ("writes", .count(record.count)),
        ("firstLSN", record.count > 0 ? .unsigned(record.firstLSN.rawValue) : .null),
        ("lastLSN", .unsigned(record.lastLSN.rawValue)), ("time", .integer(record.baseTime)),
        ("storedBytes", .count(header.storedByteCount)),
        ("headerBytes", .count(record.headerByteCount)), ("rawBytes", .count(header.rawByteCount)),
        ("compressed", .bool(header.isCompressed)),
        ("durableUpTo", .unsigned(record.durableUpTo.rawValue)), ("readable", .bool(isReadable)),
      ]).text
    }
    let stored = record.headerByteCount + header.storedByteCount
    let time = terminal.colored(Format.time(record.baseTime), .dim)
    return
      "\("\(record.offset)".leftPadded(to: 10))  \(kind.padded(to: 6))  "
      + "\("\(record.count)".leftPadded(to: 6))  \(range.padded(to: 19))  "
      + "\("\(stored)".leftPadded(to: 8))  \("\(header.rawByteCount)".leftPadded(to: 8))  "
      + "\("\(record.durableUpTo)".leftPadded(to: 8))  \(time)  "
      + "\(terminal.colored(record.segment.fileName, .dim))"
      + (isReadable ? "" : terminal.colored("  unreadable", .red))
  }

  // MARK: Problems

  func line(_ problem: LogCursor.Problem) -> String {
    if isJSON {
      return JSONValue.object([
        (
          "problem",
          .object([
            ("file", .string(problem.path)), ("offset", .unsigned(problem.offset)),
            ("expected", .string(problem.expected)), ("found", .string(problem.found)),
            ("skippedBytes", .unsigned(problem.skippedByteCount)),
            ("tail", .bool(problem.isTail)),
          ])
        )
      ]).text
    }
    let what = problem.isTail ? "unfinished end" : "damage"
    return terminal.colored("\(what): \(problem)", problem.isTail ? .yellow : .red)
  }
}
