import DendroEngine
import DendroStorage
import DendroTree

/// Lines about the log, for people and for programs.
struct LogLines {
  let terminal: Terminal
  let isJSON: Bool
  /// Columns of a value that are shown if the layout does not say.
  var valueWidth = 100
  var layout = LogLayout(columns: nil)
  /// Whether the writes are what was changed of the second root.
  var isOfSecondRoot = false

  // MARK: Writes

  var heading: String { layout.heading }

  /// - Parameter isDurable: whether the write is known to be durable.
  func line(_ write: LoggedWrite, in record: RecordInfo, isDurable: Bool) -> String {
    isJSON ? json(write, in: record, isDurable) : text(write, in: record, isDurable)
  }

  private func text(_ logged: LoggedWrite, in record: RecordInfo, _ isDurable: Bool) -> String {
    let mark = isDurable ? " " : terminal.colored("*", .yellow)
    let lsn = "\(logged.lsn)".leftPadded(to: layout.lsnWidth)
    var width = lsn.count + 1
    var line = lsn + mark
    func add(_ text: String, _ columns: Int, _ color: Terminal.Color?) {
      line +=
        " " + (color.map { terminal.colored(text, $0) } ?? text)
        + String(repeating: " ", count: max(0, columns - text.count) + 1)
      width += max(columns, text.count) + 2
    }
    if layout.timeWidth > 0 { add(layout.time(logged.time), layout.timeWidth, .dim) }
    add(Self.operation(logged.write), LogLayout.operationWidth, Self.color(logged.write))
    if layout.showsPlace {
      add("\(logged.byteCount)".leftPadded(to: LogLayout.byteWidth), LogLayout.byteWidth, nil)
      add(Self.place(record), LogLayout.placeWidth, .dim)
    }
    let room = layout.columns.map { max(8, $0 - width - 1) }
    var path = "\(logged.write.path)".printable
    if let room { path = path.truncated(toColumns: room) }
    line += " " + terminal.colored(path, .cyan)
    let valueRoom = room.map { $0 - path.columnCount - 2 } ?? valueWidth
    let value =
      valueRoom > 0 ? value(logged.write, valueRoom).truncated(toColumns: valueRoom) : ""
    return value.isEmpty ? line : line + "  " + value
  }

  private func json(_ logged: LoggedWrite, in record: RecordInfo, _ isDurable: Bool) -> String {
    var members: [(String, JSONValue)] = [
      ("lsn", .unsigned(logged.lsn.rawValue)), ("time", .integer(logged.time)),
      ("operation", .string(Self.operation(logged.write))),
      ("path", .string("\(logged.write.path)")), ("bytes", .count(logged.byteCount)),
      ("file", .string(record.segment.fileName)), ("offset", .unsigned(record.offset)),
      ("durable", .bool(isDurable)),
    ]
    if isOfSecondRoot { members.append(("root", .string("system"))) }
    if let origin = logged.origin {
      members.append(("client", .string(hexadecimal(origin.client))))
      members.append(("clientNumber", .unsigned(origin.number)))
    }
    members += Self.members(of: logged.write)
    return JSONValue.object(members).text
  }

  /// What a write sets, adds or changes.
  static func members(of write: Write) -> [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    let export = JSONStyle(.export)
    switch write {
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
    return members
  }

  func value(_ write: Write) -> String { value(write, valueWidth) }

  private func value(_ write: Write, _ width: Int) -> String {
    switch write {
    case .set(_, let node): return preview(node, width)
    case .increment(_, let delta): return "+ \(JSONWriter.string(Node(delta.scalar)))"
    case .setPriority(_, let priority):
      return priority.map { preview(Node($0), width) } ?? "null"
    case .remove: return ""
    case .update(_, let entries):
      var text = ""
      for entry in entries {
        if !text.isEmpty { text += ", " }
        text += Self.relative(entry.path).printable
        switch entry.action {
        case .set(let node): text += ": " + preview(node, width)
        case .remove: text += ": null"
        case .increment(let delta): text += " + \(JSONWriter.string(Node(delta.scalar)))"
        case .setPriority(let priority):
          text += "/.priority: " + (priority.map { preview(Node($0), width) } ?? "null")
        }
        if text.columnCount > width {
          let more = entries.count > 1 ? " (\(Format.count(entries.count)) places)" : ""
          return text.truncated(toColumns: max(1, width - more.count)) + more
        }
      }
      return text
    }
  }

  /// The beginning of a node's text, however large it is.
  func preview(_ node: Node) -> String { preview(node, valueWidth) }

  private func preview(_ node: Node, _ width: Int) -> String {
    struct Enough: Error {}
    var bytes = [UInt8]()
    do {
      try JSONWriter.write(node, style: JSONStyle(.export)) { part in
        bytes.append(contentsOf: part.prefix(width * 4 + 1 - bytes.count))
        if bytes.count > width * 4 { throw Enough() }
      }
    } catch {}
    return String(decoding: bytes, as: UTF8.self).printable.truncated(toColumns: width)
  }

  private static func relative(_ path: Path) -> String { String("\(path)".dropFirst()) }

  /// The number that the segment's name has, and the offset of the record in it.
  static func place(_ record: RecordInfo) -> String {
    "\(record.segment.firstLSN):\(record.offset)"
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

  /// About writes that were removed before they could be shown.
  func line(removed: ClosedRange<UInt64>) -> String {
    if isJSON {
      return JSONValue.object([
        (
          "removed",
          .object([
            ("firstLSN", .unsigned(removed.lowerBound)), ("lastLSN", .unsigned(removed.upperBound)),
          ])
        )
      ]).text
    }
    return terminal.colored(
      "removed: the writer no longer has the writes \(Format.ranges([removed])), which were not read yet",
      .yellow)
  }

  /// Of records that depend on damaged ones.
  func unreadable(_ count: Int) -> String {
    let records = Format.count(count, "record")
    return terminal.colored(
      "unreadable: \(records), compressed against damaged ones and perhaps damaged, too (--json)",
      .red)
  }

  func line(_ problem: LogCursor.Problem) -> String {
    if isJSON {
      return JSONValue.object([
        (
          "problem",
          .object([
            ("file", .string(problem.path)),
            ("offset", problem.isMissing ? .null : .unsigned(problem.offset)),
            ("missing", problem.isMissing ? .string(problem.expected) : .null),
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
